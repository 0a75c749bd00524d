package audit

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"time"
)

// A Transcoder turns stored records into their exported lines without decoding
// them: what [Codec.Decode] and [Record.AppendJSON] give, to the byte, in an eighth
// of the time. It is for one goroutine.
//
// A line is what the leaf of its record in the log's tree is made of, so it is
// the same for ever: another form of it would be another version of records.
type Transcoder struct {
	codec *Codec

	// Records of one run follow each other: of the last head both renderings.
	head       []byte // as it is stored
	who, after []byte // from run_id on, and the digests at the end
	day        int64  // since 1970, that date is
	date       []byte // such as 2026-01-02T
}

// NewTranscoder returns a transcoder.
func NewTranscoder() (*Transcoder, error) {
	codec, err := NewCodec()
	return &Transcoder{codec: codec, day: math.MinInt64}, err
}

// AppendLine appends the exported line of a record, without a line end, given
// its stored form. It refuses what [Codec.Decode] refuses.
func (t *Transcoder) AppendLine(dst, stored []byte) ([]byte, error) {
	v := view{}
	if v.read(stored) {
		if line, ok := t.append(dst, &v); ok {
			return line, nil
		}
	}
	// Kinds that are one in a run, and what is damaged: the long way, which says why.
	r, err := t.codec.Decode(stored)
	if err != nil {
		return dst, err
	}
	return r.AppendJSON(dst)
}

// append renders what v has; not ok: it is for the long way.
func (t *Transcoder) append(dst []byte, v *view) (_ []byte, ok bool) {
	const longest = 253402300799999 // the last millisecond of the year 9999
	if v.unixMS < 0 || v.unixMS > longest || !t.rendered(v.head) {
		return dst, false
	}
	dst = append(dst, `{"v":1,"kind":"`...)
	if v.decision {
		dst = append(dst, KindDecision...)
	} else {
		dst = append(dst, KindCallDone...)
	}
	dst = strconv.AppendUint(append(dst, `","seq":`...), v.seq, 10)
	dst = t.appendTime(append(dst, `,"ts":"`...), v.unixMS)
	dst = strconv.AppendUint(append(dst, `","run_seq":`...), v.runSeq, 10)
	dst = append(dst, t.who...)
	if v.decision {
		dst = v.appendDecision(dst)
	} else {
		dst = v.appendDone(dst)
	}
	return append(dst, t.after...), true
}

// rendered makes who and after say what a stored head says.
func (t *Transcoder) rendered(head []byte) bool {
	if bytes.Equal(head, t.head) && t.head != nil {
		return true
	}
	var h Head
	if t.codec.Unmarshal(head, &h) != nil {
		return false
	}
	t.head = append(t.head[:0], head...)
	t.who = appendMember(t.who[:0], "run_id", h.RunID)
	t.who = appendMember(t.who, "trace_id", h.TraceID)
	t.who = appendMember(t.who, "tenant", h.Tenant)
	t.who = appendMember(t.who, "agent", h.Agent)
	if h.ParentRun != "" {
		t.who = appendMember(t.who, "parent_run", h.ParentRun)
	}
	t.after = appendMember(t.after[:0], "bundle_digest", h.BundleDigest)
	t.after = append(appendMember(t.after, "effective_digest", h.EffectiveDigest), '}')
	return true
}

const dayMS = 24 * 60 * 60 * 1000

// appendTime appends a time as [timeLayout] has it.
func (t *Transcoder) appendTime(dst []byte, ms int64) []byte {
	day, rest := ms/dayMS, ms%dayMS
	if day != t.day {
		t.day, t.date = day, time.UnixMilli(ms).UTC().AppendFormat(t.date[:0], "2006-01-02T")
	}
	dst = append(dst, t.date...)
	sec := rest / 1000
	dst = append(appendDigits(dst, sec/3600, 2), ':')
	dst = append(appendDigits(dst, sec/60%60, 2), ':')
	dst = append(appendDigits(dst, sec%60, 2), '.')
	return append(appendDigits(dst, rest%1000, 3), 'Z')
}

func appendDigits(dst []byte, n int64, width int) []byte {
	if width == 3 {
		dst, n = append(dst, byte('0'+n/100)), n%100
	}
	return append(dst, byte('0'+n/10), byte('0'+n%10))
}

func appendMember[T string | []byte](dst []byte, name string, value T) []byte {
	dst = append(append(append(dst, ',', '"'), name...), '"', ':')
	return appendText(dst, value)
}

func appendOptional(dst []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	return appendMember(dst, name, value)
}

// appendText appends a JSON string. What is not plain is left to the encoder
// that the other lines are made by.
func appendText[T string | []byte](dst []byte, s T) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return appendStrange(dst, string(s))
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// A view is a stored record of one of the two frequent kinds; its texts are
// parts of the stored form.
type view struct {
	seq, runSeq uint64
	unixMS      int64
	head        []byte
	decision    bool
	severity    uint64

	tool, label, capability, op, target, reason, layer []byte
	args                                               []byte
	deny                                               bool

	verb, status, result, summary []byte
	duration                      float64
	bytes                         int64
}

// read takes p apart. It is false for any other kind, and for whatever is not
// as [Codec.Encode] makes it.
func (v *view) read(p []byte) bool {
	c := cursor{p: p}
	major, n := c.head()
	if major != 5 || n != 6 || c.number() != 0 || c.number() != 1 || c.number() != 1 {
		return false
	}
	v.seq = c.number()
	c.expect(2)
	v.runSeq = c.number()
	c.expect(3)
	v.unixMS = c.integer()
	c.expect(4)
	v.head = c.raw()
	switch c.number() {
	case 5:
		v.decision = true
		c.ordered(func(key uint64) { v.readDecision(&c, key) })
	case 6:
		c.ordered(func(key uint64) { v.readDone(&c, key) })
	default:
		return false
	}
	return !c.bad && len(c.p) == 0 && v.severity <= uint64(Error) && (!v.decision || len(v.args) == 32)
}

func (v *view) readDecision(c *cursor, key uint64) {
	switch key {
	case 1:
		v.tool = c.utf8()
	case 2:
		v.label = c.utf8()
	case 3:
		v.capability = c.utf8()
	case 4:
		v.op = c.utf8()
	case 5:
		v.target = c.utf8()
	case 6:
		v.args = c.octets()
	case 7:
		v.deny = c.truth()
	case 8:
		v.severity = c.number()
	case 9:
		v.reason = c.utf8()
	case 10:
		v.layer = c.utf8()
	default:
		c.bad = true
	}
}

func (v *view) readDone(c *cursor, key uint64) {
	switch key {
	case 1:
		if string(c.utf8()) != KindCallDone {
			c.bad = true
		}
	case 2:
		v.severity = c.number()
	case 7:
		v.verb = c.utf8()
	case 8:
		v.status = c.utf8()
	case 9:
		v.duration = c.float()
	case 10:
		v.bytes = c.integer()
	case 11:
		v.result = c.utf8()
	case 12:
		v.summary = c.utf8()
	default:
		c.bad = true
	}
}

func (v *view) appendDecision(dst []byte) []byte {
	const digits = "0123456789abcdef"
	dst = appendOptional(dst, "tool", v.tool)
	dst = appendOptional(dst, "label", v.label)
	dst = appendMember(dst, "cap", v.capability)
	dst = appendMember(dst, "op", v.op)
	dst = appendMember(dst, "target", v.target)
	dst = append(dst, `,"args_hash":"`...)
	for _, b := range v.args {
		dst = append(dst, digits[b>>4], digits[b&15])
	}
	dst = append(dst, '"')
	dst = appendMember(dst, "decision", decisionWord(v.deny))
	dst = appendMember(dst, "severity", Severity(v.severity).String())
	dst = appendMember(dst, "reason", v.reason)
	return appendOptional(dst, "layer", v.layer)
}

func (v *view) appendDone(dst []byte) []byte {
	dst = appendMember(dst, "severity", Severity(v.severity).String())
	dst = appendMember(dst, "verb", v.verb)
	dst = appendMember(dst, "status", v.status)
	dst = appendFloat(append(dst, `,"duration_ms":`...), finite(v.duration))
	dst = strconv.AppendInt(append(dst, `,"bytes":`...), v.bytes, 10)
	dst = appendMember(dst, "result_hash", v.result)
	return appendOptional(dst, "error_summary", v.summary)
}

// appendFloat appends a number as JavaScript writes it, which is how JSON
// documents have them.
func appendFloat(dst []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		begin := len(dst)
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		if at := begin + bytes.LastIndex(dst[begin:], []byte("e-0")); at >= begin {
			dst = slices.Delete(dst, at+2, at+3)
		}
		return dst
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}
