// Package archtest holds the code to the drawing in ARCHITECTURE.md: which
// rooms there are, which may import which and why, who alone may import a
// module from outside or do a thing to the process, and the laws of style that
// no other tool checks.
//
// It is tests only. The drawing is rooms_test.go; change it first, then the
// walls. What may break a law of style, and why, is exceptions_test.go.
package archtest
