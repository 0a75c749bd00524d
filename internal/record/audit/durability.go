package audit

import "slices"

// A Durability says when the records of a run are on disk, where they survive
// the loss of power as well. Whatever it says, a record survives the death of
// the process as soon as it is made, and all of a run is on disk when it has ended.
type Durability uint8

// The durabilities, each of which promises what those before it do.
const (
	// PerRun: when the run has ended.
	PerRun Durability = iota
	// PerEffect: before each call that leaves the machine or changes it.
	PerEffect
	// PerRecord: before each call that was decided, and each refusal.
	PerRecord
)

var durabilities = [...]string{"run", "effect", "record"}

// String is the word for d in settings.
func (d Durability) String() string { return durabilities[d%Durability(len(durabilities))] }

// ParseDurability is the durability that word names.
func ParseDurability(word string) (Durability, bool) {
	i := slices.Index(durabilities[:], word)
	return Durability(max(i, 0)), i >= 0
}
