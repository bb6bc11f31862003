//! Python workers, and what sends rows to them.

use super::*;

#[test]
fn python_has_two_halves() {
    let eval = "E.python.EvalPythonEvaluatorFactory$EvalPythonPartitionEvaluator.eval";
    let reads =
        "S.api.python.BasePythonRunner$ReaderIterator.hasNext E.python.BasePythonUDFRunner$$anon$2.read";
    all(&[
        (&format!("{eval} E.python.BatchEvalPythonEvaluatorFactory.evaluate"), "BatchEvalPython"),
        (
            "S.api.python.BasePythonRunner$WriterThread.run S.api.python.PythonRDD$.writeIteratorToStream E.python.BatchEvalPythonExec$.$anonfun$getInputIterator$3 E.python.EvaluatePython$.toJava",
            "BatchEvalPython",
        ),
        // A method of the companion serves all runners.
        (
            "E.python.ArrowEvalPythonEvaluatorFactory.evaluate E.python.PythonUDFRunner$.writeUDFs",
            "ArrowEvalPython",
        ),
        ("E.python.ArrowPythonRunner.writeUDF E.python.PythonUDFRunner$.writeUDFs", "(python)"),
        ("E.python.PythonUDFRunner$$anon$1.writeNextInputToStream", "BatchEvalPython"),
        (&format!("{NEXT} G2.processNext {reads}"), "(python)"),
        (&format!("G2.hashAgg_doAggregateWithKeys_0$ {reads}"), "(python)"),
        // Up to 3.5 and from 4.0 on what is upstream is its own.
        (
            &format!("{reads} S.api.python.PythonRDD$.writeNextElementToStream {NEXT} G1.processNext"),
            "WholeStageCodegen (1)",
        ),
    ]);
    let python = |names: &[&str]| {
        let signs = names.iter().map(|name| FrameSign::of(&Frame::new(FrameKind::Python, *name, "")));
        signs.fold(OperatorWalk::default(), OperatorWalk::then).operator()
    };
    let worker =
        ["worker (pyspark/daemon.py)", "invoke_udf (pyspark/worker.py)", "f.<locals>.<lambda> (job.py)"];
    assert_eq!(python(&worker), Operator::Around(Operator::PYTHON));
    assert_eq!(
        python(&["<module> (pyspark/daemon.py)"]),
        Operator::Around(Operator::PYTHON),
        "what it begins with"
    );
    assert_eq!(python(&["main (job.py)"]), Operator::Unknown);
    assert!(Operator::is_python("ArrowEvalPython") && !Operator::is_python("Sort"));
}
