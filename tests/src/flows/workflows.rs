//! Runs of workflows: tasks after each other, under the limits of their types.

mod caps;
mod crashes;
mod limits;
mod maps;
mod runs;

use super::*;
use tollgate::flows::{Begun, Retry, Task, TaskFailure, TaskJob, Workflow};

/// A worker of tasks of a type, and the tasks that it began.
struct Tasks {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Worked, tollgate::Error>>,
    heard: mpsc::UnboundedReceiver<(String, Option<u32>)>,
}

impl Tasks {
    /// The next task that is begun.
    async fn hears(&mut self) -> (String, Option<u32>) {
        patiently(self.heard.recv()).await.unwrap()
    }

    async fn stop(self) {
        drop(self.stop);
        patiently(self.task).await.unwrap().unwrap();
    }
}

/// Serves the tasks of a type.
fn serve(
    opened: &Opened,
    type_name: &str,
    make: impl Fn(TaskJob) -> Result<Value, TaskFailure> + Send + Sync + 'static,
) -> Tasks {
    let (told, heard) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = opened.gate().flows().tasks(type_name).concurrency(8);
    let worker = worker.until(async move { drop(stopped.await) });
    let task = tokio::spawn(worker.run(move |job| {
        drop(told.send((job.task.clone(), job.item)));
        let made = make(job);
        async move { made }
    }));
    Tasks { stop, task, heard }
}

/// Gives its input with its name.
fn echo(job: TaskJob) -> Result<Value, TaskFailure> {
    Ok(json!({ job.task.as_str(): job.read::<Value>()? }))
}

async fn start(flows: &Flows, workflow: &str, input: Value) -> String {
    flows.start_workflow(workflow, input).await.unwrap().run
}
