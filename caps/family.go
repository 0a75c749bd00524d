package caps

// A Family is one kind of thing that an agent may touch.
type Family uint8

// The families, in the order of the contract.
const (
	FS Family = iota
	Net
	Time
	KBRead
	KBWrite
	Secrets
	Model
	Exec
	Env
	MCP
	Agents
	NumFamilies
)

// A Mode is one independent axis of a family: a grant in one mode says nothing
// about another. Each (family, mode) has a bitset of its own.
type Mode uint8

// Modes of FS. Every other family but Net and Secrets has only mode 0.
const (
	Read Mode = iota
	Write
	Delete
)

// Modes of Secrets: Get is asking for a handle, Use is putting the value in
// towards a host (scope "id@host:port").
const (
	Get Mode = iota
	Use
)

// A ModeSet is a set of modes of one family, bit m for mode m.
type ModeSet uint32
