// Package sandbox is what happens inside of a sandbox before a program runs in it,
// and beside it while it does: the view of files that is put together, the system
// calls and the folders that programs are kept from, and the broker that makes
// changes for them by name. It is told all of it by a plan, and decides nothing.
package sandbox
