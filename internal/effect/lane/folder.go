package lane

import "runloop.dev/rlp/internal/effect/lane/sandbox"

// An Access is what programs may do with a folder and all that is below it.
type Access = sandbox.Access

// The accesses; each holds what the one before it does.
const (
	Hidden    = sandbox.Hidden
	ReadOnly  = sandbox.ReadOnly
	ReadWrite = sandbox.ReadWrite
)

// A Folder is a path and what programs may do there.
type Folder = sandbox.Folder

// Executables are the files that a program may execute, or all that it sees but those.
type Executables = sandbox.Executables

// How a program uses a path, as [Command.Used] is told.
const (
	Looks  = sandbox.Looks
	Reads  = sandbox.Reads
	Lists  = sandbox.Lists
	Writes = sandbox.Writes
	Makes  = sandbox.Makes
)

// ConfineName is the argument by which rlp is told to be [Confined].
const ConfineName = sandbox.ConfineName

// Confined is what a process becomes that confines a program.
func Confined() int { return sandbox.Confined() }
