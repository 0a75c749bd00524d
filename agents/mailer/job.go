package main

import (
	"errors"
	"strings"

	"runloop.dev/rlp/agents/sdk/jsonlite"
)

// keyID is the secret that the mail service asks for.
const keyID = "runloop/mail/api_key"

// A job is what the operator asks for.
type job struct {
	api    string // where mails are posted
	from   string
	prefix string // only drafts whose keys begin with it
}

var errInput = errors.New("the input is a JSON object with the text api, and, if you like, from and prefix")

func parseJob(input []byte) (job, error) {
	objects, err := jsonlite.Objects(input)
	if err != nil || len(objects) != 1 {
		return job{}, errInput
	}
	j := job{}
	for name, value := range objects[0] {
		switch name {
		case "api":
			j.api = value
		case "from":
			j.from = value
		case "prefix":
			j.prefix = value
		default:
			return job{}, errInput
		}
	}
	if !strings.HasPrefix(j.api, "https://") && !strings.HasPrefix(j.api, "http://") {
		return job{}, errInput
	}
	return j, nil
}

// The states of a draft. One that is being sent was claimed by a run that may
// have ended: it is sent again, with the same idempotency key.
const (
	stateDraft   = "draft"
	stateSending = "sending"
	stateSent    = "sent"
	stateFailed  = "failed"
)

// A draft is one mail as it is kept.
type draft struct {
	key      string
	revision uint64

	state, contact, to, recipient, subject, text, model string
	id, why                                             string // what the mail service said
}

// parseDraft reads a draft; what is none is left alone.
func parseDraft(key string, revision uint64, value []byte) (draft, bool) {
	objects, err := jsonlite.Objects(value)
	if err != nil || len(objects) != 1 {
		return draft{}, false
	}
	o := objects[0]
	d := draft{
		key: key, revision: revision, state: o["state"], contact: o["contact"], to: o["to"], recipient: o["recipient"],
		subject: o["subject"], text: o["text"], model: o["model"],
	}
	return d, (d.state == stateDraft || d.state == stateSending) && d.to != ""
}

// value is the draft as it is kept from now on.
func (d draft) value(state string) []byte {
	var w jsonlite.Writer
	w.Object()
	for _, m := range [...][2]string{
		{"state", state},
		{"contact", d.contact},
		{"to", d.to},
		{"recipient", d.recipient},
		{"subject", d.subject},
		{"text", d.text},
		{"model", d.model},
		{"id", d.id},
		{"why", d.why},
	} {
		if m[1] != "" {
			w.Key(m[0]).String(m[1])
		}
	}
	w.End()
	return w.Bytes()
}

var (
	errMasked = errors.New("it holds a mask that nothing stands for; reading contacts and drafts takes contacts_raw " +
		"and drafts_raw")
	errAddress = errors.New("it has no address")
)

// A mail is what the service is given.
type mail struct{ to, subject, text string }

// fill puts the data of the contact in the place of the masks that whoever wrote
// the draft saw in its place. Masks of anybody else are not filled in: a mail
// shows its reader no other person's data.
func (d draft) fill(email, name string) (mail, error) {
	put := func(s string) string {
		s = strings.ReplaceAll(s, d.to, email)
		if isMask(d.recipient) {
			s = strings.ReplaceAll(s, d.recipient, name)
		}
		return s
	}
	m := mail{to: d.to, subject: d.subject, text: d.text}
	if isMask(d.to) {
		m = mail{to: email, subject: put(d.subject), text: put(d.text)}
	}
	if isMask(m.to) || hasMask(m.subject) || hasMask(m.text) {
		return m, errMasked
	}
	if !strings.Contains(m.to, "@") || strings.ContainsAny(m.to, "\r\n,") || strings.ContainsAny(m.subject, "\r\n") {
		return m, errAddress
	}
	return m, nil
}

// isMask reports whether s is one mask, such as <email:bcdfghjkmnpq>.
func isMask(s string) bool { return maskLen(s) == len(s) && s != "" }

func hasMask(s string) bool {
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			return false
		}
		if maskLen(s[i:]) > 0 {
			return true
		}
		s = s[i+1:]
	}
}

// maskLen is the length of the mask that s begins with, 0 if there is none.
func maskLen(s string) int {
	if !strings.HasPrefix(s, "<") {
		return 0
	}
	kind, rest, ok := strings.Cut(s[1:min(len(s), 32)], ":")
	if !ok || kind == "" || len(rest) < 13 || rest[12] != '>' || !isLower(kind) || !isLower(rest[:12]) {
		return 0
	}
	return 1 + len(kind) + 1 + 13
}

func isLower(s string) bool {
	for _, c := range []byte(s) {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// body is the mail as the API takes it.
func (j job) body(m mail) []byte {
	var w jsonlite.Writer
	w.Object()
	if j.from != "" {
		w.Key("from").String(j.from)
	}
	w.Key("to").String(m.to)
	w.Key("subject").String(m.subject)
	w.Key("text").String(m.text)
	w.End()
	return w.Bytes()
}
