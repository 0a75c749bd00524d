// Package export turns records of the audit log into what other programs read:
// JSON lines, CSV, OCSF events and OpenTelemetry spans.
//
// Records come in as they are stored and in the order of the log; what goes out
// depends on them alone: the same records give the same bytes and the same span
// ids, whenever and in however many pieces they are exported. Where an export
// has come to is a [Cursor], which is replaced only after what it speaks of is
// durable. The package knows no store and reads no clock but to wait for a
// collector.
package export

import (
	"fmt"
	"iter"
	"slices"

	"runloop.dev/rlp/internal/record/audit"
)

// A Format is the name of one form of export.
type Format string

// The formats.
const (
	JSONL Format = "jsonl" // the leaves of the log's tree, one a line
	OCSF  Format = "ocsf"  // one event of the Open Cybersecurity Schema Framework a line
	OTLP  Format = "otlp"  // a span a run and a span a call
	CSV   Format = "csv"   // one row a record
)

// Formats are all there are.
func Formats() []Format { return []Format{JSONL, OCSF, OTLP, CSV} }

// ParseFormat reads the name of a format.
func ParseFormat(s string) (Format, error) {
	if !slices.Contains(Formats(), Format(s)) {
		return "", fmt.Errorf("--format takes %s, %s, %s or %s, not %q", JSONL, OCSF, OTLP, CSV, s)
	}
	return Format(s), nil
}

// An Encoder renders records. It is for one goroutine.
type Encoder interface {
	// Head is what an empty output begins with.
	Head() []byte
	// Append appends what came of one more record, if that is rendered by itself.
	Append(dst []byte, g *audit.Glance) ([]byte, error)
	// Flush appends what was collected since, and forgets it.
	Flush(dst []byte) []byte
	// Full reports whether enough was collected to be flushed.
	Full() bool
}

// Options is what encoders need to know beside records.
type Options struct {
	Tenant  string
	Version string // of this program
	// Binary is for a collector: protobuf instead of lines.
	Binary bool
	// Only is which calls have spans; nil: all.
	Only func(*audit.Record) bool
	// Past are the records of a run in their order, from its first on. Spans are
	// made of what a run did before, and an export may begin in the middle of one.
	Past func(run string) iter.Seq2[*audit.Glance, error]
}

// New makes an encoder.
func New(f Format, o Options) (Encoder, error) {
	codec, err := audit.NewCodec()
	if err != nil {
		return nil, err
	}
	lines, err := audit.NewTranscoder()
	if err != nil {
		return nil, err
	}
	switch f {
	case JSONL:
		return &jsonl{lines: lines}, nil
	case CSV:
		return &table{codec: codec}, nil
	case OCSF:
		return &ocsf{codec: codec, lines: lines, version: o.Version}, nil
	case OTLP:
		return &tracer{codec: codec, opt: o, runs: map[string]*tracedRun{}}, nil
	}
	return nil, fmt.Errorf("no format %q", f)
}

// whole is the part of an [Encoder] that renders each record by itself.
type whole struct{}

func (whole) Head() []byte            { return nil }
func (whole) Flush(dst []byte) []byte { return dst }
func (whole) Full() bool              { return false }

// jsonl is the log as it is: each line, without its line end, is a leaf.
type jsonl struct {
	whole
	lines *audit.Transcoder
}

func (j *jsonl) Append(dst []byte, g *audit.Glance) ([]byte, error) {
	dst, err := j.lines.AppendLine(dst, g.Stored)
	return append(dst, '\n'), err
}
