//! Tests on real Spark applications under the optimised daemon. They need root, Spark and a JDK, and skip else. One at a
//! time: each application takes all of a small machine.

mod applications;
mod attribution;
mod compare;
mod held;
mod kept;
mod notebook;
mod page_on_spark;
mod python_tasks;
mod servers;
mod spark_sql;
mod sql_operators;
mod waits;
mod whose;
mod yarn;
