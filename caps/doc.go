// Package caps is the capability algebra: what a [Grant] covers, how a [Set]
// is narrowed, and what a [Request] is answered.
//
// A Set only ever shrinks. [Base] is the one widening step, taken once per
// launch; every later step is a [Layer] and goes through [Set.Narrow].
//
// The package does no I/O and reads no clock.
package caps
