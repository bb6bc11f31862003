//! Lists of what nodes write, of which no node can take more than its share.
//!
//! In: a name below which each node has a place of its own. Out: the objects there, and the nodes that were left out. While
//! each node has at most [`MAX_OF_HOST`] names one list is enough; else each node is listed alone, [`AT_ONCE`] at a time, and
//! those with more are left out, as is the one that has most while all together have too many.

use super::super::layout;
use super::super::remote::{Object, Remote, RemoteError};
use futures_util::{StreamExt, stream};
use std::collections::HashMap;

/// Names of a node in a list, one page of S3: it writes about a block an hour, and a few pieces of the one to come.
const MAX_OF_HOST: usize = 1000;
/// Nodes that are listed at once.
const AT_ONCE: usize = 32;

/// A list, by node.
#[derive(Debug)]
pub(crate) struct ByHost {
    /// The objects of the other nodes, in the order of their names.
    pub objects: Vec<Object>,
    /// Nodes that were left out, by their place in the archive, and why.
    pub left_out: Vec<(String, String)>,
}

/// The objects below a name, where a node's name is the next part: at most `most`.
///
/// # Errors
/// The store refuses or does not answer.
pub(crate) async fn by_host(remote: &Remote, below: &str, most: usize) -> Result<ByHost, RemoteError> {
    let (mut counts, mut all): (HashMap<String, usize>, usize) = (HashMap::new(), 0);
    let in_bounds = |name: &str| {
        let rest = name.strip_prefix(below).unwrap_or_default().trim_start_matches('/');
        let count = counts.entry(rest.split('/').next().unwrap_or_default().to_owned()).or_default();
        *count += 1;
        all += 1;
        *count <= MAX_OF_HOST && all <= most
    };
    match remote.list_while(below, in_bounds).await? {
        Some(objects) => Ok(ByHost { objects, left_out: Vec::new() }),
        None => each_alone(remote, below, most).await,
    }
}

async fn each_alone(remote: &Remote, below: &str, most: usize) -> Result<ByHost, RemoteError> {
    let mut hosts = remote.dirs(below).await?;
    hosts.retain(|host| layout::is_plain(host));
    let mut lists = stream::iter(hosts.into_iter().map(|host| async move {
        let own = format!("{below}/{host}");
        let mut count = 0;
        let in_bounds = |_: &str| {
            count += 1;
            count <= MAX_OF_HOST
        };
        let objects = remote.list_while(&own, in_bounds).await?;
        Ok::<_, RemoteError>((own, objects))
    }))
    .buffer_unordered(AT_ONCE);
    let mut kept: Vec<(String, Vec<Object>)> = Vec::new();
    let mut left_out: Vec<(String, String)> = Vec::new();
    let mut all = 0;
    while let Some(listed) = lists.next().await {
        match listed? {
            (own, Some(objects)) => {
                all += objects.len();
                kept.push((own, objects));
            }
            (own, None) => {
                let says = format!("has more than {MAX_OF_HOST} objects, or one that cannot be listed");
                left_out.push((own, says));
            }
        }
    }
    kept.sort_by_key(|(_, objects)| objects.len());
    while all > most {
        let Some((own, objects)) = kept.pop() else { break };
        all -= objects.len();
        let says = format!("has {} objects, and all nodes together have more than {most}", objects.len());
        left_out.push((own, says));
    }
    left_out.sort();
    let mut objects: Vec<Object> = kept.into_iter().flat_map(|(_, objects)| objects).collect();
    objects.sort();
    Ok(ByHost { objects, left_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of an archive in which nodes have that many objects: how many, and the nodes that are not in it.
    fn listed(nodes: &[(&str, usize)], most: usize) -> (usize, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        for (node, count) in nodes {
            let below = dir.path().join("v1/open").join(node);
            std::fs::create_dir_all(&below).unwrap();
            (0..*count).for_each(|number| std::fs::write(below.join(number.to_string()), "").unwrap());
        }
        let remote = Remote::open(&format!("file://{}", dir.path().display()), false).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listed = runtime.block_on(by_host(&remote, "v1/open", most)).unwrap();
        (listed.objects.len(), listed.left_out.into_iter().map(|(place, _)| place).collect())
    }

    #[test]
    fn no_node_takes_the_others_room() {
        assert_eq!(listed(&[], 10), (0, Vec::new()));
        assert_eq!(listed(&[("a", 2), ("b", MAX_OF_HOST)], usize::MAX), (MAX_OF_HOST + 2, Vec::new()));
        let greedy = vec!["v1/open/b".to_owned()];
        assert_eq!(listed(&[("a", 2), ("b", MAX_OF_HOST + 1), ("c", 3)], usize::MAX), (5, greedy.clone()));
        assert_eq!(listed(&[("a", 2), ("b", 6), ("c", 3)], 10), (5, greedy));
    }
}
