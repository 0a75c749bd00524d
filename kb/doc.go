// Package kb is what a home remembers: the knowledge base that agents read and
// write (package values), and the append-only audit log (package log).
//
// Each tenant of a home has a store of its own, a badger database in its own
// directory, and nothing takes a tenant but [Open], so a view cannot name another's.
// A write that was acknowledged outlives the death of every process concerned.
//
// The first process that needs a store owns it and serves the others through a
// socket that only its own user can reach; when it goes, one of the others
// takes its place and repeats what was under way, which is applied once. Runs
// themselves need no store: they append to journals (package journal), and the
// owner takes the journals in. Nothing outside of kb knows badger.
package kb
