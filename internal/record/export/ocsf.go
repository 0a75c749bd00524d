package export

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"runloop.dev/rlp/internal/record/audit"
)

// ocsfVersion is the version of the schema that events are made by.
const ocsfVersion = "1.8.0"

// Classes and the activities that are used of them.
const (
	lifecycle = 6002 // Application Lifecycle: a run, what it holds
	apiCall   = 6003 // API Activity: a decision, what came of a call

	apiCreate, apiRead, apiUpdate, apiDelete = 1, 2, 3, 4
	appStart, appStop                        = 3, 4
	otherActivity                            = 99
)

// ocsf renders a record as one event a line. The exported record itself is
// whole, byte for byte, in unmapped.
type ocsf struct {
	whole
	codec   *audit.Codec
	lines   *audit.Transcoder
	version string
	line    []byte
	buf     bytes.Buffer
}

func (o *ocsf) Append(dst []byte, g *audit.Glance) ([]byte, error) {
	r, err := o.codec.Decode(g.Stored)
	if err != nil {
		return dst, err
	}
	if o.line, err = o.lines.AppendLine(o.line[:0], g.Stored); err != nil {
		return dst, err
	}
	e := o.event(&r)
	e.Unmapped = o.line
	o.buf.Reset()
	enc := json.NewEncoder(&o.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return dst, err
	}
	return append(dst, o.buf.Bytes()...), nil
}

// event is what all classes have, and what the record's has.
func (o *ocsf) event(r *audit.Record) *ocsfEvent {
	h := &r.Head
	e := &ocsfEvent{
		CategoryUID: 6, CategoryName: "Application Activity", Time: r.Time.UnixMilli(),
		Metadata: ocsfMetadata{
			Version: ocsfVersion, Product: ocsfProduct{Name: "rlp", Vendor: "Runloop", Version: o.version},
			UID: h.RunID + "/" + strconv.FormatUint(r.RunSeq, 10), EventCode: r.Kind(), LogName: "rlp audit log",
			LogVersion: "1", Sequence: r.Seq,
			Tenant: h.Tenant, Correlation: h.TraceID, OriginalTime: r.Time.UTC().Format("2006-01-02T15:04:05.000Z"),
			Profiles: []string{"security_control"},
		},
	}
	if r.Decision != nil || r.Event.Kind == audit.KindCallDone {
		o.call(e, r)
	} else {
		o.run(e, r)
	}
	e.TypeUID = e.ClassUID*100 + e.ActivityID
	e.TypeName = e.ClassName + ": " + e.ActivityName
	return e
}

// call is a decision, or what came of a call.
func (o *ocsf) call(e *ocsfEvent, r *audit.Record) {
	h := &r.Head
	e.ClassUID, e.ClassName = apiCall, "API Activity"
	e.Metadata.Profiles = append(e.Metadata.Profiles, "trace")
	e.Trace = &ocsfUID{UID: h.TraceID}
	e.Actor = &ocsfActor{AppName: h.Agent, AppUID: h.BundleDigest, Process: ocsfProcess{Name: h.Agent, UID: h.RunID}}
	if h.ParentRun != "" {
		e.Actor.Process.Parent = &ocsfUID{UID: h.ParentRun}
	}
	e.Source = &ocsfEndpoint{Name: h.Agent, InstanceUID: h.RunID, Service: "rlp"}
	e.API = &ocsfAPI{Request: ocsfUID{UID: e.Metadata.UID}, Service: ocsfName{Name: "runloop_v1"}}
	if r.Event != nil {
		e.done(r.Event)
		return
	}
	e.decision(r.Decision)
}

func (e *ocsfEvent) decision(d *audit.DecisionRecord) {
	e.severity(d.Severity)
	e.activity(d.Cap, d.Op)
	e.API.Operation = d.Op
	if strings.HasPrefix(d.Cap, "fs.") || strings.HasPrefix(d.Op, "environ_") || strings.HasPrefix(d.Op, "clock_") {
		e.API.Service.Name = "wasi_snapshot_preview1"
	}
	e.StatusCode = d.Reason
	e.Message = verdict(d.Deny) + " " + d.Cap
	e.Resources = []ocsfResource{{Name: d.Target, Type: d.Cap}}
	if d.Target == "" {
		e.Resources[0].Name = d.Cap
	} else {
		e.Message += " " + d.Target
	}
	if d.Deny {
		e.outcome(finding{2, 2, 2, [3]string{"Failure", "Denied", "Blocked"}})
		e.Message += ": " + d.Reason
		if d.Layer != "" {
			e.Policy = &ocsfPolicy{Name: d.Layer, Applied: true}
		}
	} else {
		// That it was allowed says nothing of how it went: that is another event.
		e.outcome(finding{0, 1, 1, [3]string{"Unknown", "Allowed", "Allowed"}})
	}
	e.target(d)
}

// target is what a target of some kinds is beside a name.
func (e *ocsfEvent) target(d *audit.DecisionRecord) {
	switch d.Cap {
	case "net.http":
		u, err := url.Parse(d.Target)
		if err != nil || u.Hostname() == "" {
			return
		}
		e.Destination = &ocsfEndpoint{Hostname: u.Hostname()}
		e.Destination.Port, _ = strconv.Atoi(u.Port())
	case "model.use":
		provider, name := modelOf(d.Target)
		if name == "" {
			return
		}
		e.Model = &ocsfModel{Provider: provider, Name: name, UID: d.Target}
		e.Metadata.Profiles = append(e.Metadata.Profiles, "ai_operation")
	}
}

// modelOf takes the provider and the name out of a model's target.
func modelOf(target string) (provider, name string) {
	provider, name, ok := strings.Cut(target, ":")
	if !ok {
		return "unknown", target
	}
	return provider, name
}

func (e *ocsfEvent) done(d *audit.Event) {
	e.severity(d.Severity)
	e.activity("", d.Verb)
	e.API.Operation = d.Verb
	e.API.Response = &ocsfResponse{Message: d.Status, ErrorMessage: d.ErrorSummary}
	e.StatusCode, e.Detail = d.Status, d.ErrorSummary
	e.Message = "done " + d.Verb + ": " + d.Status
	if d.Status == "ok" {
		e.outcome(finding{1, 1, 1, [3]string{"Success", "Allowed", "Allowed"}})
		return
	}
	e.API.Response.Error, e.API.Response.Message = d.Status, ""
	e.outcome(finding{2, 1, 27, [3]string{"Failure", "Allowed", "Error"}})
}

func (o *ocsf) run(e *ocsfEvent, r *audit.Record) {
	h, ev := &r.Head, r.Event
	e.ClassUID, e.ClassName = lifecycle, "Application Lifecycle"
	e.App = &ocsfProduct{Name: h.Agent, UID: h.BundleDigest}
	e.severity(ev.Severity)
	switch {
	case ev.Kind == audit.KindRunStart:
		e.ActivityID, e.ActivityName = appStart, "Start"
		e.outcome(finding{1, 1, 1, [3]string{"Success", "Allowed", "Allowed"}})
		e.Message = "run of " + h.Agent + " started"
	case ev.Kind == audit.KindCapsSwap:
		e.ActivityID, e.ActivityName = otherActivity, "Capabilities changed"
		e.outcome(finding{1, 4, 24, [3]string{"Success", "Modified", "Access Revoked"}})
		e.StatusCode, e.Detail = ev.Source, ev.Label
		e.Message = "what " + h.Agent + " may do has changed: " + ev.Source
	case ev.Kind == audit.KindPolicyRejected:
		e.ActivityID, e.ActivityName = appStart, "Start"
		e.outcome(finding{2, 2, 2, [3]string{"Failure", "Denied", "Blocked"}})
		e.ended(h, ev, "was refused")
	case ev.Kind == audit.KindRunComplete:
		e.ActivityID, e.ActivityName = appStop, "Stop"
		e.outcome(finding{1, 1, 17, [3]string{"Success", "Allowed", "Logged"}})
		e.ended(h, ev, "ended")
	default:
		e.ActivityID, e.ActivityName = appStop, "Stop"
		e.outcome(finding{2, 3, 17, [3]string{"Failure", "Observed", "Logged"}})
		e.ended(h, ev, "failed")
	}
}

func (e *ocsfEvent) ended(h *audit.Head, ev *audit.Event, how string) {
	e.StatusCode, e.Detail = ev.Outcome, ev.Message
	if e.Detail == "" {
		e.Detail = ev.Reason
	}
	e.Message = "run of " + h.Agent + " " + how + ": " + ev.Outcome
}

// activity is what kind of thing a call does.
func (e *ocsfEvent) activity(capability, op string) {
	switch {
	case strings.Contains(op, "delete"), strings.Contains(op, "unlink"), strings.Contains(op, "remove"):
		e.ActivityID, e.ActivityName = apiDelete, "Delete"
	case strings.Contains(op, "create"):
		e.ActivityID, e.ActivityName = apiCreate, "Create"
	case capability == "fs.write", capability == "kb.write", op == "kb_put", op == "kb_cas":
		e.ActivityID, e.ActivityName = apiUpdate, "Update"
	case capability == "fs.read", capability == "kb.read", capability == "env.read", capability == "time.now",
		capability == "secrets.get",
		strings.HasPrefix(op, "kb_"), op == "secret_handle":
		e.ActivityID, e.ActivityName = apiRead, "Read"
	default:
		e.ActivityID, e.ActivityName = otherActivity, op
	}
}

func (e *ocsfEvent) severity(s audit.Severity) {
	switch s {
	case audit.Info:
		e.SeverityID, e.Severity = 1, "Informational"
	case audit.Warn:
		e.SeverityID, e.Severity = 3, "Medium"
	default:
		e.SeverityID, e.Severity = 4, "High"
	}
}

// A finding is a status and what rlp did about it, by OCSF's numbers.
type finding struct {
	status, action, disposition int
	words                       [3]string
}

// outcome says how it went. A denial is what somebody may want to hear of.
func (e *ocsfEvent) outcome(f finding) {
	e.StatusID, e.Status = f.status, f.words[0]
	e.ActionID, e.Action, e.DispositionID, e.Disposition = f.action, f.words[1], f.disposition, f.words[2]
	e.Alert = f.action == 2
}
