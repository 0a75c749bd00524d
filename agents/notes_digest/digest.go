package main

import (
	"cmp"
	"slices"
	"strings"

	"runloop.dev/rlp/agents/sdk"
)

// A digest is what all notes hold together.
type digest struct {
	notes, empty, done int
	contacts           []contact
	todos              []todo
	dates              []date
	included           []string // files outside the folder that were read
	remarks            []string
	problems           []problem

	byMail map[string]int // index in contacts
}

// A contact is one address.
type contact struct {
	email, name string
	notes       []string
	names       []string // every name it was seen with
}

// A problem is something that the agent could not do and did without.
type problem struct {
	doing, target, why string
}

func (p problem) String() string { return "could not " + p.doing + " " + p.target + ": " + p.why }

func (d *digest) problem(doing, target string, err error) {
	d.problems = append(d.problems, problem{doing, target, clean(sdk.Why(err))})
}

func (d *digest) add(n note) {
	if n.empty {
		d.empty++
	}
	d.done += n.done
	d.todos = append(d.todos, n.todos...)
	d.dates = append(d.dates, n.dates...)
	for _, s := range n.contacts {
		i, ok := d.byMail[s.email]
		if !ok {
			i = len(d.contacts)
			d.byMail[s.email] = i
			d.contacts = append(d.contacts, contact{email: s.email})
		}
		c := &d.contacts[i]
		if !slices.Contains(c.notes, n.name) {
			c.notes = append(c.notes, n.name)
		}
		if s.name != "" {
			c.names = append(c.names, s.name)
		}
	}
}

// sort brings everything in the order in which it is written, which depends on
// nothing but the notes.
func (d *digest) sort() {
	for i := range d.contacts {
		d.contacts[i].name = commonest(d.contacts[i].names)
	}
	slices.SortFunc(d.contacts, func(a, b contact) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.email, b.email))
	})
	slices.SortStableFunc(d.dates, func(a, b date) int { return strings.Compare(a.day, b.day) })
}

// commonest returns the name seen most often, of several the first.
func commonest(names []string) string {
	best, most := "", 0
	counts := map[string]int{}
	for _, n := range names {
		counts[n]++
	}
	for _, n := range names {
		if counts[n] > most {
			best, most = n, counts[n]
		}
	}
	return best
}

// deadlines returns the dates that are deadlines, or those that are not.
func (d *digest) deadlines(want bool) []date {
	var list []date
	for _, x := range d.dates {
		if x.deadline == want {
			list = append(list, x)
		}
	}
	return list
}
