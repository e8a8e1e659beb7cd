//! A graph of transactions, and the search for a cycle in it.
//!
//! That one transaction ended before another began would be an edge for almost every pair. Instead
//! there is a node for each moment, with an edge to the next one: a transaction leads to the moment
//! of its end, and the moment of its beginning leads to it.

use std::collections::BTreeMap;

/// Transactions are the nodes below `transactions`; moments follow when the cycle is searched.
#[derive(Debug)]
pub(super) struct Graph {
    transactions: usize,
    edges: Vec<(usize, usize, &'static str)>,
    /// Per moment, who begins (false) or ends (true) there.
    moments: BTreeMap<u64, Vec<(usize, bool)>>,
}

impl Graph {
    pub(super) fn new(transactions: usize) -> Graph {
        Graph { transactions, edges: Vec::new(), moments: BTreeMap::new() }
    }

    /// `from` comes before `to`.
    pub(super) fn edge(&mut self, from: usize, to: usize, why: &'static str) {
        if from != to {
            self.edges.push((from, to, why));
        }
    }

    /// When a transaction began, and when it ended, if that is known.
    pub(super) fn time(&mut self, transaction: usize, began: u64, ended: Option<u64>) {
        self.moments.entry(began).or_default().push((transaction, false));
        if let Some(ended) = ended {
            self.moments.entry(ended).or_default().push((transaction, true));
        }
    }

    /// A cycle in words, if there is one.
    pub(super) fn cycle(mut self) -> Option<String> {
        let mut node = self.transactions;
        for events in std::mem::take(&mut self.moments).into_values() {
            for (transaction, ends) in events {
                if ends {
                    self.edges.push((transaction, node, "ended before"));
                } else {
                    self.edges.push((node, transaction, "began"));
                }
            }
            self.edges.push((node, node + 1, "time"));
            node += 1;
        }
        let nodes = node + 1;
        let mut incoming = vec![0_usize; nodes];
        let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); nodes];
        for (from, to, _) in &self.edges {
            incoming[*to] += 1;
            outgoing[*from].push(*to);
        }
        // Whatever has nothing before it goes; what never goes is on a cycle or behind one.
        let mut free: Vec<usize> = (0..nodes).filter(|node| incoming[*node] == 0).collect();
        while let Some(node) = free.pop() {
            for next in &outgoing[node] {
                incoming[*next] -= 1;
                if incoming[*next] == 0 {
                    free.push(*next);
                }
            }
        }
        let stuck = incoming.iter().position(|count| 0 < *count)?;
        Some(self.words(&self.walk_back(stuck, &incoming)))
    }

    /// Goes from a node that is on a cycle or behind one to its predecessors until one comes again.
    fn walk_back(&self, start: usize, incoming: &[usize]) -> Vec<(usize, usize, &'static str)> {
        let mut before: BTreeMap<usize, (usize, usize, &'static str)> = BTreeMap::new();
        for edge in &self.edges {
            if 0 < incoming[edge.0] && 0 < incoming[edge.1] {
                before.insert(edge.1, *edge);
            }
        }
        let mut path = Vec::new();
        let mut node = start;
        loop {
            let edge = before[&node];
            path.push(edge);
            node = edge.0;
            if let Some(from) = path.iter().position(|edge| edge.1 == node) {
                let mut cycle = path.split_off(from);
                cycle.reverse();
                return cycle;
            }
        }
    }

    fn words(&self, cycle: &[(usize, usize, &'static str)]) -> String {
        let is_moment = |node: usize| self.transactions <= node;
        let mut words = Vec::new();
        for (from, to, why) in cycle {
            match (is_moment(*from), is_moment(*to)) {
                (false, false) => words.push(format!("{from} {why} {to}")),
                (false, true) => words.push(format!("{from} {why}")),
                (true, false) => words.push(format!("{to} {why}")),
                (true, true) => {}
            }
        }
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::Graph;

    #[test]
    fn cycles_are_found() {
        let mut graph = Graph::new(4);
        graph.edge(0, 1, "was read by");
        graph.edge(1, 2, "did not see");
        graph.edge(0, 0, "was read by");
        graph.time(3, 0, Some(9));
        assert_eq!(graph.cycle(), None);
        let mut graph = Graph::new(4);
        graph.edge(3, 0, "was read by");
        graph.edge(0, 1, "was read by");
        graph.edge(1, 0, "did not see");
        graph.edge(1, 2, "appended before");
        let words = graph.cycle().unwrap();
        assert!(words.contains("0 was read by 1") && words.contains("1 did not see 0"), "{words}");
        assert!(!words.contains('2') && !words.contains('3'), "{words}");
    }

    #[test]
    fn time_is_an_order() {
        let mut graph = Graph::new(2);
        graph.time(0, 0, Some(1));
        graph.time(1, 2, Some(3));
        graph.edge(1, 0, "was read by");
        let words = graph.cycle().unwrap();
        assert!(words.contains("0 ended before") && words.contains("1 began"), "{words}");
        let mut graph = Graph::new(2);
        graph.time(0, 0, Some(2));
        graph.time(1, 1, Some(3));
        graph.edge(1, 0, "was read by");
        assert_eq!(graph.cycle(), None, "they overlap");
        let mut graph = Graph::new(2);
        graph.time(0, 0, None);
        graph.time(1, 2, Some(3));
        graph.edge(1, 0, "was read by");
        assert_eq!(graph.cycle(), None, "nobody knows when the first one ended");
    }
}
