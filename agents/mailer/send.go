package main

import (
	"errors"
	"strconv"
	"strings"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/jsonlite"
)

// An outcome is what became of a job.
type outcome struct {
	sent, failed, left int // left: drafts that stay drafts
	retryAfter         string
	problems           []string
}

func (o *outcome) problem(what string, err error) {
	o.problems = append(o.problems, what+": "+sdk.Why(err))
}

// errStop ends the job: the next mail would meet the same answer.
var errStop = errors.New("stopped")

// send sends what lies in drafts, as far as it may.
func (o *outcome) send(j job) {
	handle, err := sdk.SecretHandle(keyID)
	if err != nil {
		o.problem("could not have the key "+keyID, err)
		return
	}
	entries, err := sdk.KBList("drafts", j.prefix)
	if err != nil {
		o.problem("could not list the drafts", err)
		return
	}
	stopped := false
	for _, e := range entries {
		value, err := sdk.KBGet("drafts", e.Key)
		if err != nil {
			o.problem("could not read "+e.Key, err)
			continue
		}
		d, ok := parseDraft(e.Key, e.Revision, value)
		if !ok {
			continue
		}
		if stopped {
			o.left++
			continue
		}
		stopped = errors.Is(o.one(j, d, handle), errStop)
	}
}

// one sends one draft: it claims it, posts it, and says in it what came of that.
func (o *outcome) one(j job, d draft, handle string) error {
	m, err := d.mail()
	if err != nil {
		o.left++
		o.problem("did not send "+d.key, err)
		return nil
	}
	d.revision, err = sdk.KBCAS("drafts", d.key, d.value(stateSending), d.revision)
	if errors.Is(err, sdk.ErrConflict) {
		return nil // another run has it, or it has changed
	}
	if err != nil {
		o.left++
		o.problem("could not claim "+d.key, err)
		return errStop
	}
	state, err := o.post(j, &d, m, handle)
	if _, keepErr := sdk.KBCAS("drafts", d.key, d.value(state), d.revision); keepErr != nil {
		o.problem("could not mark "+d.key+" as "+state, keepErr)
	}
	switch state {
	case stateSent:
		o.sent++
	case stateFailed:
		o.failed++
	default:
		o.left++
	}
	return err
}

// mail is the draft with the data of its contact.
func (d draft) mail() (mail, error) {
	if d.contact == "" {
		return d.fill("", "")
	}
	value, err := sdk.KBGet("contacts", d.contact)
	if err != nil {
		return mail{}, err
	}
	objects, err := jsonlite.Objects(value)
	if err != nil || len(objects) != 1 {
		return mail{}, errAddress
	}
	return d.fill(objects[0]["email"], objects[0]["name"])
}

// post gives the mail to the service and returns the state that the draft has
// then, and errStop when it is no use to go on.
func (o *outcome) post(j job, d *draft, m mail, handle string) (string, error) {
	r, err := sdk.HTTP(sdk.HTTPRequest{Method: "POST", URL: j.api, Body: j.body(m), Headers: map[string]string{
		"Authorization": "Bearer " + handle, "Content-Type": "application/json", "Idempotency-Key": d.key,
	}})
	switch {
	case errors.Is(err, sdk.ErrDenied), errors.Is(err, sdk.ErrBudget), errors.Is(err, errors.ErrUnsupported),
		errors.Is(err, sdk.ErrInvalid):
		o.problem("could not send "+d.key, err)
		return stateDraft, errStop // nothing left this machine
	case err != nil:
		o.problem("no answer for "+d.key, err)
		return stateSending, errStop // it may have arrived
	case r.Status == 429 || r.Status >= 500:
		o.retryAfter = header(r, "Retry-After")
		o.problems = append(o.problems, "the service is busy (status "+strconv.Itoa(r.Status)+after(o.retryAfter)+")")
		return stateDraft, errStop
	case r.Status == 401 || r.Status == 403:
		o.problems = append(o.problems, "the service does not take the key (status "+strconv.Itoa(r.Status)+")")
		return stateDraft, errStop
	case r.Status < 200 || r.Status > 299:
		d.why = "status " + strconv.Itoa(r.Status)
		o.problems = append(o.problems, "the service refused "+d.key+" ("+d.why+")")
		return stateFailed, nil
	}
	if answer, err := jsonlite.Objects(r.Body); err == nil && len(answer) == 1 {
		d.id = answer[0]["id"]
	}
	return stateSent, nil
}

func after(retry string) string {
	if retry == "" {
		return ""
	}
	return ", again in " + retry + " s"
}

func header(r sdk.HTTPResponse, name string) string {
	for k, v := range r.Headers {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

func (o *outcome) summary() string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(o.sent) + " sent, " + strconv.Itoa(o.failed) + " refused, " + strconv.Itoa(o.left) +
		" left as drafts\n")
	for _, p := range o.problems {
		b.WriteString(p + "\n")
	}
	return b.String()
}

func (o *outcome) json() []byte {
	var w jsonlite.Writer
	w.Object()
	w.Key("sent").Int(int64(o.sent))
	w.Key("failed").Int(int64(o.failed))
	w.Key("left").Int(int64(o.left))
	if o.retryAfter != "" {
		w.Key("retry_after").String(o.retryAfter)
	}
	w.Key("problems").Strings(o.problems)
	w.End()
	return w.Bytes()
}
