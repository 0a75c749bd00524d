// Package journal is what a run writes before its records are in the store:
// one file a run, appended by one writer, readable by anyone of the same user
// while it grows.
//
// The law: when [Journal.Decide] returns nil the record is in memory that
// belongs to the kernel (a shared mapping of preallocated file), so that it
// survives the death of the process at any instruction. When it returns an
// error nothing was recorded. A reader sees a record whole or not at all, in
// the order in which it was written, and a record that was changed, removed or
// torn is reported, never skipped.
//
// A writer holds a lock on its file for as long as it lives; a file that is
// not locked will not grow any more.
package journal
