package audit

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
)

// timeLayout is RFC 3339 in UTC with exactly three digits of a second.
const timeLayout = "2006-01-02T15:04:05.000Z"

// The shapes below are the exported form, one a kind: a key is there because
// its kind has it, in this order, and nothing else can appear.
type (
	headShape struct {
		V         int    `json:"v"`
		Kind      string `json:"kind"`
		Seq       uint64 `json:"seq"`
		TS        string `json:"ts"`
		RunSeq    uint64 `json:"run_seq"`
		RunID     string `json:"run_id"`
		TraceID   string `json:"trace_id"`
		Tenant    string `json:"tenant"`
		Agent     string `json:"agent"`
		ParentRun string `json:"parent_run,omitempty"`
	}
	digestShape struct {
		BundleDigest    string `json:"bundle_digest"`
		EffectiveDigest string `json:"effective_digest"`
	}
	decisionShape struct {
		headShape
		Tool     string `json:"tool,omitempty"`
		Label    string `json:"label,omitempty"`
		Cap      string `json:"cap"`
		Op       string `json:"op"`
		Target   string `json:"target"`
		ArgsHash string `json:"args_hash"`
		Decision string `json:"decision"`
		Severity string `json:"severity"`
		Reason   string `json:"reason"`
		Layer    string `json:"layer,omitempty"`
		digestShape
	}
	startShape struct {
		headShape
		Severity      string           `json:"severity"`
		Base          []string         `json:"base"`
		Effective     []string         `json:"effective"`
		Except        []string         `json:"except,omitempty"`
		LimitsSummary map[string]int64 `json:"limits_summary"`
		PolicyPresent bool             `json:"policy_present"`
		Layers        []Layer          `json:"layers,omitempty"`
		Floor         *Layer           `json:"floor,omitempty"`
		digestShape
	}
	doneShape struct {
		headShape
		Severity     string  `json:"severity"`
		Verb         string  `json:"verb"`
		Status       string  `json:"status"`
		DurationMS   float64 `json:"duration_ms"`
		Bytes        int64   `json:"bytes"`
		ResultHash   string  `json:"result_hash"`
		ErrorSummary string  `json:"error_summary,omitempty"`
		digestShape
	}
	swapShape struct {
		headShape
		Severity string  `json:"severity"`
		Source   string  `json:"source"`
		Label    string  `json:"label,omitempty"`
		Before   string  `json:"before"`
		After    string  `json:"after"`
		Layers   []Layer `json:"layers,omitempty"`
		digestShape
	}
	endShape struct {
		headShape
		Severity   string           `json:"severity"`
		Outcome    string           `json:"outcome"`
		ExitCode   int              `json:"exit_code"`
		Reason     string           `json:"reason,omitempty"`
		Message    string           `json:"message,omitempty"`
		Violations []string         `json:"violations,omitempty"`
		Usage      map[string]int64 `json:"usage,omitempty"`
		digestShape
	}
)

// MarshalJSON returns the record as the contract exports it.
func (r Record) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// AppendJSON appends the exported form of r to dst, without a line end and
// without the escapes that JSON inside HTML needs. It refuses a record whose
// kind is unknown.
func (r *Record) AppendJSON(dst []byte) ([]byte, error) {
	shape, err := r.shape()
	if err != nil {
		return dst, err
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(shape); err != nil {
		return dst, err
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...), nil
}

func (r *Record) shape() (any, error) {
	head := headShape{
		V: 1, Kind: r.Kind(), Seq: r.Seq, TS: r.Time.UTC().Format(timeLayout), RunSeq: r.RunSeq,
		RunID: r.Head.RunID, TraceID: r.Head.TraceID, Tenant: r.Head.Tenant, Agent: r.Head.Agent, ParentRun: r.Head.ParentRun,
	}
	digests := digestShape{r.Head.BundleDigest, r.Head.EffectiveDigest}
	if d := r.Decision; d != nil {
		return decisionShape{
			head, d.Tool, d.Label, d.Cap, d.Op, d.Target, hex.EncodeToString(d.ArgsHash[:]),
			decisionWord(d.Deny), d.Severity.String(), d.Reason, d.Layer, digests,
		}, nil
	}
	e := r.Event
	if e == nil {
		return nil, errors.New("exporting an audit record: it is empty")
	}
	sev := e.Severity.String()
	switch {
	case e.Kind == KindRunStart:
		return startShape{
			head, sev, list(e.Base), list(e.Effective), e.Except, counts(e.LimitsSummary), e.PolicyPresent,
			e.Layers, e.Floor, digests,
		}, nil
	case e.Kind == KindCallDone:
		return doneShape{head, sev, e.Verb, e.Status, finite(e.DurationMS), e.Bytes, e.ResultHash, e.ErrorSummary, digests},
			nil
	case e.Kind == KindCapsSwap:
		return swapShape{head, sev, e.Source, e.Label, e.Before, e.After, e.Layers, digests}, nil
	case Ends(e.Kind):
		return endShape{head, sev, e.Outcome, e.ExitCode, e.Reason, e.Message, e.Violations, e.Usage, digests}, nil
	}
	return nil, errors.New("exporting an audit record: unknown kind " + e.Kind)
}

func decisionWord(deny bool) string {
	if deny {
		return "deny"
	}
	return "allow"
}

// finite makes what JSON cannot say a zero.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// list and counts make an absent value an empty one, so that JSON never says null.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func counts(m map[string]int64) map[string]int64 {
	if m == nil {
		return map[string]int64{}
	}
	return m
}

// appendStrange appends a JSON string of any text.
func appendStrange(dst []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a text can always be said
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
