# Runs the daemon beside programs of known stacks and leaves what it says in $OUT. In: MODE (full, java: JVMs of many kinds,
# spark: an application of it, or quick), and where things are; the defaults are the guest's. Out: files, and lines `fact NAME=VALUE` in $OUT/facts. Judges
# nothing.
: "${MODE:=full}" "${OUT:=/tmp/out}" "${WORK:=/tmp/work}" "${TOOLS:=/tools}" "${JAVA:=/jdk/bin/java}" "${PORT:=4099}"
export HOME=/tmp EMBERSCOPE_URL="unix:$WORK/socket"
mkdir -p "$OUT" "$WORK"
cd "$WORK" || exit 1
# All kinds that need no name: each has programs of its own, and each kernel its own verifier. What a kernel cannot do is said.
EVENTS=cpu,page-faults,major-faults,context-switches,block-io,off-cpu,alloc

fact() { echo "fact $1=$2" | tee -a "$OUT/facts"; }
uptime_of() { cut -d' ' -f1 /proc/uptime; }
# In turns of a second; false after so many.
wait_for() {
    turns=$1
    shift
    while ! "$@"; do
        turns=$((turns - 1))
        [ "$turns" -gt 0 ] || return 1
        sleep 1
    done
}
started=
finish() { for pid in $started; do kill "$pid" 2>/dev/null; done; }
trap finish EXIT
trap 'exit 1' INT TERM

fact up "$(uname -r)"
fact begun "$(uptime_of)"
"$TOOLS/emberscope" doctor --json --data-dir "$WORK/data" --listen "127.0.0.1:$PORT" --socket "$WORK/socket" \
    >"$OUT/doctor.json" 2>"$OUT/doctor.log"
fact doctor $?

if [ "$MODE" = quick ]; then
    "$TOOLS/spin" 20 thread >/dev/null &
    started=$!
    fact native $!
    "$TOOLS/emberscope" record --events "$EVENTS" --duration 4s --group pid --format json -o "$OUT/graph.json" >"$OUT/daemon.log" 2>&1
    fact graph $?
    fact ended "$(uptime_of)"
    exit 0
fi

"$TOOLS/emberscope" daemon --data-dir "$WORK/data" --listen "127.0.0.1:$PORT" --socket "$WORK/socket" --window 5s \
    --events "$EVENTS" >"$OUT/daemon.log" 2>&1 &
daemon=$!
started=$daemon
answers() {
    kill -0 "$daemon" 2>/dev/null || return 0
    "$TOOLS/emberscope" status --json >"$WORK/status" 2>/dev/null
}
wait_for 300 answers
if ! kill -0 "$daemon" 2>/dev/null; then
    fact daemon ended
    exit 0
fi
fact daemon "$(uptime_of)"

"$TOOLS/spin" 20 thread >/dev/null &
native=$!
started="$started $native"
fact native "$native"
[ "$MODE" != full ] || {
    "$TOOLS/spin" syscall >/dev/null &
    started="$started $!"
    fact syscall $!
}
jvms=
# jvm NAME FLAGS.. CLASS ARGUMENTS..: starts a JVM, of which NAME is a fact.
jvm() {
    name=$1
    shift
    (exec "$JAVA" -Xmx128m -XX:+UseSerialGC -XX:CompileCommand=quiet -cp "$TOOLS" "$@") >"$WORK/$name" 2>&1 &
    started="$started $!"
    fact "$name" $!
    jvms="$jvms $WORK/$name"
}
# Calls that are not inlined are frames in whatever way they are walked.
apart=-XX:CompileCommand=dontinline,Walk::*
case $MODE in
full)
    jvm java "$apart" Walk deep 20
    jvm javafp "$apart" -XX:+PreserveFramePointer Walk deep 20
    ;;
java)
    jvm compiled -Xcomp -XX:CompileCommand=compileonly,Walk::* "$apart" Walk deep 20
    jvm interpreted -Xint Walk deep 20
    jvm mixed -XX:CompileCommand=exclude,Walk::deep "$apart" Walk deep 20
    jvm inlined Walk deep 20
    jvm jni UpDown "$TOOLS/libupdown.so"
    ;;
esac
ready() { for log in $jvms; do grep -q ready "$log" || return 1; done; }
wait_for 300 ready || { fact java_late yes; cat $jvms >"$OUT/java.log"; }
# Until all is compiled, and the native program's files have tables, which takes longer beside five JVMs; then some windows of it.
[ "$MODE" != java ] || sleep 20
sleep 12
from=$(($(date +%s) + 5))
if [ "$MODE" = spark ]; then
    export JAVA_HOME="${JAVA%/bin/java}" SPARK_HOME=/python/pyspark PYTHONPATH=/python PYSPARK_PYTHON=/usr/bin/python3.11
    "$PYSPARK_PYTHON" "$TOOLS/guest_spark.py" 8 >"$WORK/application" 2>"$OUT/application.log"
    fact application $?
    grep '^fact ' "$WORK/application" | tee -a "$OUT/facts"
    app=$(sed -n 's/^fact app=//p' "$WORK/application")
    # The window that it ended in, and what comes late.
    sleep 15
    "$TOOLS/emberscope" stages --app "$app" --from "$from" --json >"$OUT/stages.json" 2>"$OUT/stages.log"
    "$TOOLS/emberscope" flamegraph --app "$app" --from "$from" --group role,stage --format json -o "$OUT/spark.json" >"$OUT/graph.log" 2>&1
    fact spark $?
else
    sleep 30
fi
# Of all that runs beside an application nobody asks.
only=
[ "$MODE" != spark ] || only="--pid $native"
"$TOOLS/emberscope" status --json >"$OUT/status.json" 2>"$OUT/status.log"
"$TOOLS/emberscope" flamegraph --from "$from" $only --group pid --format json -o "$OUT/graph.json" >"$OUT/graph.log" 2>&1
fact graph $?
kill "$daemon"
wait "$daemon"
fact stopped $?
fact ended "$(uptime_of)"
