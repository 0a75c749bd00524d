// Package caps is the capability algebra: what a [Grant] covers, how a [Set]
// is narrowed, and what a [Request] is answered.
//
// A Set only ever shrinks. [Base] is the one widening step, taken once per
// launch; every later step is a [Layer] and goes through [Set.Narrow]. A step
// that cannot be taken is an error, and leaves a Set that grants nothing.
//
// Every family is laminar: two scopes are nested or disjoint. The scopes that
// any layer names, and those on the way to them, are the universe of a launch, a
// tree for each family; bit i stands for the cell of scope i, which is the scope
// without the scopes below it. A layer is the cells that it leaves, in a bitset
// for each family and mode; the meet of layers is their AND; and [Set.Check] is
// one walk to the deepest scope that holds the request, and one bit. A scope that
// a later layer names splits a cell, so it takes over its parent's bit, and ids
// stay valid for as long as a run lasts.
//
// The package does no I/O and reads no clock.
package caps
