package main

import (
	"errors"
	"hash/fnv"
	"path"
	"strconv"
	"strings"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/jsonlite"
)

// An outcome is a digest and what became of it.
type outcome struct {
	digest    *digest
	written   []string
	contacts  int // kept in the knowledge base
	artifacts int
}

// write puts the digest into the folder out.
func (o *outcome) write(d disk, out string) {
	for _, f := range []struct {
		name    string
		content []byte
	}{
		{"digest.md", o.digest.markdown()},
		{"digest.json", o.digest.json("  ")},
	} {
		p := path.Join(out, f.name)
		if err := d.WriteFile(p, f.content); err != nil {
			o.digest.problem("write", clean(p), err)
			continue
		}
		o.written = append(o.written, p)
	}
}

// store keeps one value a contact in the domain contacts and the digest in the
// domain artifacts.
func (o *outcome) store() {
	for _, c := range o.digest.contacts {
		if _, err := sdk.KBPut("contacts", contactKey(c.email), c.json()); err != nil {
			o.digest.problem("store", "contacts", err)
			if hopeless(err) {
				break
			}
			continue
		}
		o.contacts++
	}
	if _, err := sdk.KBPut("artifacts", "notes_digest", o.digest.json("")); err != nil {
		o.digest.problem("store", "the digest in artifacts", err)
		return
	}
	o.artifacts++
}

// hopeless reports whether the next call would meet the same answer.
func hopeless(err error) bool {
	return errors.Is(err, sdk.ErrDenied) || errors.Is(err, sdk.ErrBudget) || errors.Is(err, errors.ErrUnsupported)
}

// contactKey is the key of an address. It stays the same when a name is learnt
// or changes, and shows no address where keys are listed and audited. (It hides
// none from someone who guesses it; that is what the domain's grants are for.)
func contactKey(email string) string {
	h := fnv.New64a()
	h.Write([]byte(email))
	sum := strconv.FormatUint(h.Sum64(), 16)
	return "mail-" + strings.Repeat("0", 16-len(sum)) + sum
}

func (c contact) json() []byte {
	var w jsonlite.Writer
	w.Object()
	c.members(&w)
	w.End()
	return w.Bytes()
}

func (c contact) members(w *jsonlite.Writer) {
	w.Key("name").String(c.name)
	w.Key("email").String(c.email)
	w.Key("notes").Strings(c.notes)
}

// json is what the agent returns.
func (o *outcome) json() []byte {
	d := o.digest
	var w jsonlite.Writer
	w.Object()
	d.counts(&w)
	w.Key("written").Strings(o.written)
	w.Key("stored").Object()
	w.Key("contacts").Int(int64(o.contacts))
	w.Key("artifacts").Int(int64(o.artifacts))
	w.End()
	d.troubles(&w)
	w.End()
	return w.Bytes()
}

func (d *digest) counts(w *jsonlite.Writer) {
	w.Key("notes").Int(int64(d.notes))
	w.Key("contacts").Int(int64(len(d.contacts)))
	w.Key("todos_open").Int(int64(len(d.todos)))
	w.Key("todos_done").Int(int64(d.done))
	w.Key("dates").Int(int64(len(d.dates)))
	w.Key("deadlines").Int(int64(len(d.deadlines(true))))
}

func (d *digest) troubles(w *jsonlite.Writer) {
	w.Key("included").Strings(d.included)
	w.Key("remarks").Strings(d.remarks)
	w.Key("problems").Array()
	for _, p := range d.problems {
		w.Object()
		w.Key("doing").String(p.doing)
		w.Key("target").String(p.target)
		w.Key("why").String(p.why)
		w.End()
	}
	w.End()
}

// json is the whole digest.
func (d *digest) json(indent string) []byte {
	w := jsonlite.Writer{Indent: indent}
	w.Object()
	w.Key("counts").Object()
	d.counts(&w)
	w.End()
	w.Key("contacts").Array()
	for _, c := range d.contacts {
		w.Object()
		c.members(&w)
		w.End()
	}
	w.End()
	w.Key("todos").Array()
	for _, t := range d.todos {
		w.Object()
		w.Key("text").String(t.text)
		if t.due != "" {
			w.Key("due").String(t.due)
		}
		w.Key("at").String(place(t.note, t.line))
		w.End()
	}
	w.End()
	w.Key("dates").Array()
	for _, x := range d.dates {
		w.Object()
		w.Key("day").String(x.day)
		w.Key("deadline").Bool(x.deadline)
		w.Key("text").String(x.text)
		w.Key("at").String(place(x.note, x.line))
		w.End()
	}
	w.End()
	d.troubles(&w)
	w.End()
	return append(w.Bytes(), '\n')
}
