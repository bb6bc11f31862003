/* The C half of python_oracle.py: functions below Python's that tell, by CPython's C API, the Python functions above them.
 *
 * Without Python.h: one library for all releases. It is loaded into an interpreter (ctypes.PyDLL, which keeps the GIL), and
 * finds there what it calls. PyFrame_GetCode and PyFrame_GetBack came with 3.9. Names are root last.
 */

#include <stddef.h>
#include <time.h>

typedef struct object Object;

Object *PyEval_GetFrame(void);
Object *PyObject_GetAttrString(Object *, const char *);
Object *PyObject_CallFunctionObjArgs(Object *, ...);
int PyObject_IsTrue(Object *);
int PyList_Append(Object *, Object *);
void PyErr_Clear(void);
void Py_IncRef(Object *);
void Py_DecRef(Object *);
Object *PyFrame_GetCode(Object *) __attribute__((weak));
Object *PyFrame_GetBack(Object *) __attribute__((weak));

static Object *code_of(Object *frame)
{
	return PyFrame_GetCode ? PyFrame_GetCode(frame) : PyObject_GetAttrString(frame, "f_code");
}

static Object *back_of(Object *frame)
{
	if (PyFrame_GetBack)
		return PyFrame_GetBack(frame);
	Object *back = PyObject_GetAttrString(frame, "f_back");
	if (back && !PyObject_IsTrue(back)) {
		Py_DecRef(back);
		return NULL;
	}
	return back;
}

static Object *name_of(Object *code)
{
	Object *name = PyObject_GetAttrString(code, "co_qualname");
	if (name)
		return name;
	PyErr_Clear();
	return PyObject_GetAttrString(code, "co_name");
}

static void tell(Object *names)
{
	Object *frame = PyEval_GetFrame();
	if (frame)
		Py_IncRef(frame);
	while (frame) {
		Object *code = code_of(frame), *name = name_of(code), *back = back_of(frame);
		PyList_Append(names, name);
		Py_DecRef(name);
		Py_DecRef(code);
		Py_DecRef(frame);
		frame = back;
	}
}

/* Tells, and no more. */
void python_oracle_tells(Object *names)
{
	tell(names);
}

/* Tells, then burns CPU until an instant (Unix seconds). */
void python_oracle_spins(Object *names, double until)
{
	struct timespec now;
	tell(names);
	do {
		for (volatile int turns = 0; turns < 100000; turns++)
			;
		clock_gettime(CLOCK_REALTIME, &now);
	} while (now.tv_sec + now.tv_nsec / 1e9 < until);
}

/* Tells, then calls a Python function with one argument. */
Object *python_oracle_calls(Object *names, Object *function, Object *argument)
{
	tell(names);
	return PyObject_CallFunctionObjArgs(function, argument, NULL);
}
