// Package archtest holds the code to the drawing in ARCHITECTURE.md: which
// packages there are, which may import which and why, who alone may import a
// module from outside or do a thing to the process, and the laws of style that
// no other tool checks.
//
// The drawing is packages_test.go; change it first, then the packages. What may
// break a law of style, and why, is exceptions_test.go; what is too large and
// may only shrink is in sizes_test.go. Only the measuring of sizes is not a
// test: the command in sizes prints it.
package archtest
