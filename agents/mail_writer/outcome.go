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
	drafted, before, skipped int // new drafts, drafts that were there, contacts without an address
	tokens                   int64
	problems                 []string
}

func (o *outcome) problem(what string, err error) {
	o.problems = append(o.problems, what+": "+sdk.Why(err))
}

// hopeless reports whether the next call would meet the same answer.
func hopeless(err error) bool {
	return errors.Is(err, sdk.ErrDenied) || errors.Is(err, sdk.ErrBudget) || errors.Is(err, errors.ErrUnsupported)
}

// write drafts a mail to each contact until something is refused for good.
func (o *outcome) write(j job) {
	entries, err := sdk.KBList("contacts", j.prefix)
	if err != nil {
		o.problem("could not list the contacts", err)
		return
	}
	for _, e := range entries {
		if err := o.contact(j, e.Key); err != nil {
			o.problem("could not write to "+oneLine(e.Key), err)
			if hopeless(err) {
				return
			}
		}
	}
}

// contact drafts the mail to one contact.
func (o *outcome) contact(j job, key string) error {
	value, err := sdk.KBGet("contacts", key)
	if err != nil {
		return err
	}
	c, ok := parseContact(key, value)
	if !ok {
		o.skipped++
		return nil
	}
	answer, err := sdk.ModelComplete(sdk.CompletionRequest{Model: j.model, Messages: []sdk.Message{
		{Role: "system", Content: instructions}, {Role: "user", Content: j.prompt(c)},
	}})
	if err != nil {
		return err
	}
	o.tokens += answer.Usage.TokensIn + answer.Usage.TokensOut
	_, err = sdk.KBCAS("drafts", j.draftKey(c), j.draft(c, answer.Text, answer.Model), 0)
	if errors.Is(err, sdk.ErrConflict) {
		o.before++ // perhaps sent already
		return nil
	}
	if err == nil {
		o.drafted++
	}
	return err
}

func (o *outcome) summary() string {
	var b strings.Builder
	b.WriteString(count(o.drafted, "draft") + " written, " + strconv.Itoa(o.before) + " there before, " +
		count(o.skipped, "contact") + " without an address, " + strconv.FormatInt(o.tokens, 10) + " tokens\n")
	for _, p := range o.problems {
		b.WriteString(p + "\n")
	}
	return b.String()
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

func (o *outcome) json() []byte {
	var w jsonlite.Writer
	w.Object()
	w.Key("drafted").Int(int64(o.drafted))
	w.Key("before").Int(int64(o.before))
	w.Key("skipped").Int(int64(o.skipped))
	w.Key("tokens").Int(o.tokens)
	w.Key("problems").Strings(o.problems)
	w.End()
	return w.Bytes()
}
