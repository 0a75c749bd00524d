package kb

import (
	"runloop.dev/rlp/kb/log"
	"runloop.dev/rlp/kb/values"
	"runloop.dev/rlp/kb/wire"
)

// Who uses a store names what its parts are asked, and answer, by this package.
type (
	// Filter picks records of the log.
	Filter = log.Filter
	// Search bounds how long is looked for records.
	Search = log.Search
	// RunQuery picks runs, of which a RunSummary each is the answer.
	RunQuery = log.RunQuery
	// RunSummary is what the log has of a run.
	RunSummary = log.RunSummary
	// Head is the size and the root of the log's tree.
	Head = log.Head
	// Checkpoint is a signed head.
	Checkpoint = log.Checkpoint
	// Mark is what was pruned, signed.
	Mark = log.Mark
	// Opened is what a signed note says.
	Opened = log.Opened
	// LogCheck says how the log is verified.
	LogCheck = log.Check
	// LogReport says what was verified of it.
	LogReport = log.Report
	// LogError is what is wrong with it.
	LogError = log.Error
	// Fault is the kind of that.
	Fault = log.Fault
	// Finding is what the log itself says was wrong.
	Finding = log.Finding

	// View is the values as somebody reads and writes them.
	View = values.View
	// Value is one of them.
	Value = values.Value
	// Origin says where a value comes from.
	Origin = values.Origin
	// Entry is what a list has of a value.
	Entry = values.Entry
	// Item is a value to be stored with others.
	Item = values.Item
	// Query is what is searched for in values.
	Query = values.Query
	// Hit is a value that was found.
	Hit = values.Hit
)

// Labels of values, and bounds of what is asked for.
const (
	Trusted      = values.Trusted
	Untrusted    = values.Untrusted
	MaxItems     = values.MaxItems
	MaxItemBytes = values.MaxItemBytes
	MaxHits      = values.MaxHits
	DefaultHits  = values.DefaultHits
)

// Kinds of what is wrong with a log; see [log.Fault].
const (
	FaultChanged   = log.FaultChanged
	FaultTruncated = log.FaultTruncated
	FaultRewritten = log.FaultRewritten
	FaultTree      = log.FaultTree
	FaultUnsealed  = log.FaultUnsealed
)

// What a caller branches on, as a store and the process that owns it have it. A key
// that is not there is [fs.ErrNotExist].
var (
	ErrConflict    = wire.ErrConflict
	ErrDomain      = wire.ErrDomain
	ErrInvalid     = wire.ErrInvalid
	ErrUnavailable = wire.ErrUnavailable
	ErrVersion     = wire.ErrVersion
	ErrDamaged     = wire.ErrDamaged
	ErrNotEmpty    = wire.ErrNotEmpty
	ErrClosed      = wire.ErrClosed
)
