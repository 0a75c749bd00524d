package main

import (
	"strconv"
	"strings"
)

// markdown is the digest for people. Text from notes stays text in it.
func (d *digest) markdown() []byte {
	var b strings.Builder
	b.WriteString("# Digest\n\n" + d.headline() + ".\n")
	d.writeDates(&b, "Deadlines", d.deadlines(true))
	d.writeTodos(&b)
	d.writeDates(&b, "Other dates", d.deadlines(false))
	d.writeContacts(&b)
	d.writeTroubles(&b)
	return []byte(b.String())
}

// quoted keeps a text from being read as HTML, as an image to be fetched or as a
// file to be included, by whoever opens the digest.
func quoted(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "<", `\<`), "![", `!\[`)
}

func (d *digest) headline() string {
	s := count(d.notes, "note", "notes")
	if d.empty > 0 {
		s += " (" + strconv.Itoa(d.empty) + " empty)"
	}
	return s + ", " + count(len(d.contacts), "contact", "contacts") + ", " +
		count(len(d.todos), "open to-do", "open to-dos") + " (" + strconv.Itoa(d.done) + " done), " +
		count(len(d.dates), "date", "dates")
}

func (d *digest) writeDates(b *strings.Builder, title string, dates []date) {
	if len(dates) == 0 {
		return
	}
	b.WriteString("\n## " + title + "\n\n")
	for _, x := range dates {
		b.WriteString("- " + x.day + ": " + quoted(x.text) + " (" + place(x.note, x.line) + ")\n")
	}
}

func (d *digest) writeTodos(b *strings.Builder) {
	if len(d.todos) == 0 {
		return
	}
	b.WriteString("\n## Open to-dos\n")
	last := ""
	for _, t := range d.todos {
		if t.note != last {
			b.WriteString("\n### " + t.note + "\n\n")
			last = t.note
		}
		b.WriteString("- [ ] " + quoted(t.text) + "\n")
	}
}

func (d *digest) writeContacts(b *strings.Builder) {
	if len(d.contacts) == 0 {
		return
	}
	b.WriteString("\n## Contacts\n\n| Name | Address | Notes |\n|---|---|---|\n")
	for _, c := range d.contacts {
		name := c.name
		if name == "" {
			name = "?"
		}
		notes := strings.ReplaceAll(quoted(strings.Join(c.notes, ", ")), "|", `\|`)
		b.WriteString("| " + name + " | " + c.email + " | " + notes + " |\n")
	}
}

func (d *digest) writeTroubles(b *strings.Builder) {
	if len(d.included)+len(d.remarks)+len(d.problems) == 0 {
		return
	}
	b.WriteString("\n## Remarks\n\n")
	for _, p := range d.included {
		b.WriteString("- included " + quoted(p) + "\n")
	}
	for _, r := range d.remarks {
		b.WriteString("- " + quoted(r) + "\n")
	}
	for _, p := range d.problems {
		b.WriteString("- " + quoted(p.String()) + "\n")
	}
}

// summaryMax is how many deadlines the summary shows.
const summaryMax = 5

// summary is what the agent prints.
func (o *outcome) summary() string {
	d := o.digest
	var b strings.Builder
	b.WriteString(d.headline() + "\n")
	if list := d.deadlines(true); len(list) > 0 {
		b.WriteString("\nfirst deadlines\n")
		for _, x := range list[:min(len(list), summaryMax)] {
			b.WriteString("  " + x.day + "  " + x.text + "\n")
		}
		if more := len(list) - summaryMax; more > 0 {
			b.WriteString("  and " + strconv.Itoa(more) + " more\n")
		}
	}
	b.WriteString("\n")
	for _, p := range o.written {
		b.WriteString("wrote " + clean(p) + "\n")
	}
	if o.contacts > 0 {
		b.WriteString("stored " + count(o.contacts, "contact", "contacts") + " in kb domain contacts\n")
	}
	if o.artifacts > 0 {
		b.WriteString("stored the digest in kb domain artifacts\n")
	}
	for _, p := range d.included {
		b.WriteString("included " + p + "\n")
	}
	for _, r := range d.remarks {
		b.WriteString("note: " + r + "\n")
	}
	for _, p := range d.problems {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
