// Package remote is a [model.Backend] in a process of its own: frames over the
// child's standard input and output, one JSON object each after its length.
//
// The child is started by the first call and again by the next one after it
// died. It has no environment but what it is given, ends with its parent, and
// gets a key with each call. Who calls and who answers are the same program, so
// that what does not parse is an end of the connection and no matter of debate.
package remote
