package export

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"runloop.dev/rlp/internal/record/audit"
)

// Kinds and states of spans, by their numbers in OTLP.
const (
	kindInternal, kindClient = 1, 3
	statusOK, statusError    = 1, 2
)

// A span is one of OpenTelemetry, as far as it is used.
type span struct {
	trace      [16]byte
	id, parent [8]byte // a parent of zeros: none
	name       string
	kind       int
	start, end int64 // nanoseconds since 1970
	attrs      []attr
	events     []event
	dropped    uint32 // events that were too many
	status     int
	message    string

	op   string // the call that it is of
	skip bool   // nobody asked for it
}

// An event is a moment of a span.
type event struct {
	at    int64
	name  string
	attrs []attr
}

// An attr is a name with one value: text, a number, a fraction, a truth or a list.
type attr struct {
	key   string
	value any // string, int64, float64, bool, []string
}

// spanID is the same for the same record for ever, so that what is sent again
// is the same span. A run is number 0 of itself.
func spanID(run string, seq uint64) (id [8]byte) {
	h := sha256.New()
	h.Write([]byte("rlp span v1\n" + run + "\n"))
	h.Write(binary.BigEndian.AppendUint64(nil, seq))
	copy(id[:], h.Sum(nil))
	if id == ([8]byte{}) { // which OpenTelemetry forbids
		id[7] = 1
	}
	return id
}

// traceID is the record's own, or made of it where it is no id of a trace.
func traceID(h *audit.Head) (id [16]byte) {
	if n, err := hex.Decode(id[:], []byte(h.TraceID[:min(len(h.TraceID), 32)])); err == nil && n == 16 &&
		len(h.TraceID) == 32 && id != ([16]byte{}) {
		return id
	}
	sum := sha256.Sum256([]byte("rlp trace v1\n" + h.TraceID + "\n" + h.RunID))
	copy(id[:], sum[:])
	return id
}

func (s *span) add(key string, value any) {
	if text, ok := value.(string); ok {
		if text == "" {
			return
		}
		value = validText(text)
	}
	s.attrs = append(s.attrs, attr{key, value})
}

// maxEvents is OpenTelemetry's own default.
const maxEvents = 128

func (s *span) event(e event) {
	if len(s.events) >= maxEvents {
		s.dropped++
		return
	}
	s.events = append(s.events, e)
}

func (s *span) fail(kind, message string) {
	s.status, s.message = statusError, validText(message)
	s.add("error.type", kind)
}

func nanos(t time.Time) int64 { return t.UnixMilli() * int64(time.Millisecond) }
