package export

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/record/audit"
)

// csvVersion is the value of the first column. Columns are only ever added, at
// the end; anything else would be another version.
const csvVersion = "1"

// columns are the names of the exported JSON's members. What a kind has beside
// them is in detail, as JSON.
var columns = [...]string{
	"v", "seq", "ts", "kind", "run_seq", "run_id", "trace_id", "parent_run", "tenant", "agent", "severity",
	"decision", "cap", "op", "target", "reason", "layer", "tool", "label", "args_hash",
	"verb", "status", "duration_ms", "bytes", "result_hash", "error_summary",
	"source", "before", "after", "outcome", "exit_code", "message", "bundle_digest", "effective_digest", "detail",
}

// table is RFC 4180: a row a record, lines end in CR LF.
type table struct {
	whole
	codec *audit.Codec
	cells [len(columns)]string
	line  []byte
}

func (t *table) Head() []byte { return []byte(strings.Join(columns[:], ",") + "\r\n") }

func (t *table) Append(dst []byte, g *audit.Glance) ([]byte, error) {
	r, err := t.codec.Decode(g.Stored)
	if err != nil {
		return dst, err
	}
	if err := t.fill(&r); err != nil {
		return dst, err
	}
	for i, c := range t.cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCell(dst, c)
	}
	return append(dst, '\r', '\n'), nil
}

func (t *table) fill(r *audit.Record) error {
	h := &r.Head
	c := &t.cells
	clear(c[:])
	c[0], c[1], c[2], c[3], c[4] = csvVersion, strconv.FormatUint(r.Seq, 10),
		r.Time.UTC().Format("2006-01-02T15:04:05.000Z"), text(r.Kind()), strconv.FormatUint(r.RunSeq, 10)
	c[5], c[6], c[7], c[8], c[9] = text(h.RunID), text(h.TraceID), text(h.ParentRun), text(h.Tenant), text(h.Agent)
	c[32], c[33] = text(h.BundleDigest), text(h.EffectiveDigest)
	if d := r.Decision; d != nil {
		c[10], c[11], c[12], c[13], c[14] = d.Severity.String(), verdict(d.Deny), text(d.Cap), text(d.Op), text(d.Target)
		c[15], c[16], c[17], c[18], c[19] = text(d.Reason), text(d.Layer), text(d.Tool), text(d.Label),
			hex.EncodeToString(d.ArgsHash[:])
		return nil
	}
	e := r.Event
	c[10] = e.Severity.String()
	if e.Kind == audit.KindCallDone {
		c[20], c[21], c[22], c[23] = text(e.Verb), text(e.Status), strconv.FormatFloat(e.DurationMS, 'f', -1, 64),
			strconv.FormatInt(e.Bytes, 10)
		c[24], c[25] = text(e.ResultHash), text(e.ErrorSummary)
		return nil
	}
	if e.Kind == audit.KindCapsSwap {
		c[18], c[26], c[27], c[28] = text(e.Label), text(e.Source), text(e.Before), text(e.After)
	}
	if audit.Ends(e.Kind) {
		c[15], c[29], c[30], c[31] = text(e.Reason), text(e.Outcome), strconv.Itoa(e.ExitCode), text(e.Message)
	}
	return t.detail(r)
}

// detail is what has no column.
func (t *table) detail(r *audit.Record) error {
	line, err := r.AppendJSON(t.line[:0])
	if err != nil {
		return err
	}
	t.line = line
	var all map[string]json.RawMessage
	if err := strictjson.Unmarshal(line, &all); err != nil {
		return err
	}
	for _, name := range columns {
		delete(all, name)
	}
	if len(all) == 0 {
		return nil
	}
	rest, err := json.Marshal(all)
	t.cells[len(columns)-1] = string(rest)
	return err
}

func verdict(deny bool) string {
	if deny {
		return "deny"
	}
	return "allow"
}

// text is s as a cell that no spreadsheet takes for a formula: what could begin
// one, and what begins with an apostrophe itself, has an apostrophe before it.
// So taking one apostrophe away, where there is one, gives s again.
func text(s string) string {
	s = validText(s)
	if s == "" {
		return s
	}
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(s, " \t\r\n\u00a0\u3000\ufeff"))
	if strings.ContainsRune("=+-@＝＋－＠", first) || s[0] == '\'' || s[0] == '\t' || s[0] == '\r' || s[0] == '\n' {
		return "'" + s
	}
	return s
}

// validText replaces each byte that is no UTF-8, as the exported JSON does.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}

func appendCell(dst []byte, s string) []byte {
	if !strings.ContainsAny(s, "\",\r\n") && strings.TrimSpace(s) == s {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	for i := range len(s) {
		if s[i] == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}
