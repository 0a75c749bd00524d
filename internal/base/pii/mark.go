package pii

import (
	"bytes"
	"strings"
)

// A Kind is what sort of datum a mask stands for.
type Kind uint8

// The kinds. Data is what could not be searched.
const (
	none Kind = iota
	Email
	Phone
	IBAN
	Card
	Account
	ID
	Address
	Birth
	Name
	Data
	numKinds
)

var kindNames = [numKinds]string{
	Email: "email", Phone: "phone", IBAN: "iban", Card: "card", Account: "account", ID: "id",
	Address: "address", Birth: "birth", Name: "name", Data: "data",
}

// String is the kind as masks show it.
func (k Kind) String() string { return kindNames[k] }

// A mask is <kind:id>. The id has no digits and no vowels: it is neither a
// number that a rule could take for a datum nor a word.
const (
	markLetters = "bcdfghjkmnpqrstv"
	idLen       = 12
	maxMark     = len("<address:>") + idLen
)

// mark is the mask of a datum in its normal form.
func (w *work) mark(k Kind, datum []byte) string {
	sum := w.mac(k, datum)
	name := k.String()
	b := make([]byte, 0, maxMark)
	b = append(append(append(b, '<'), name...), ':')
	for _, c := range sum[:idLen/2] {
		b = append(b, markLetters[c>>4], markLetters[c&15])
	}
	return string(append(b, '>'))
}

// markEnd returns where the mask that begins at b[i] ends, or 0.
func markEnd(b []byte, i int) int {
	if i >= len(b) || b[i] != '<' {
		return 0
	}
	rest := b[i+1:]
	colon := bytes.IndexByte(rest[:min(len(rest), maxMark)], ':')
	if colon < 0 || len(rest) < colon+idLen+2 || rest[colon+1+idLen] != '>' || !isKind(rest[:colon]) {
		return 0
	}
	for _, c := range rest[colon+1 : colon+1+idLen] {
		if strings.IndexByte(markLetters, c) < 0 {
			return 0
		}
	}
	return i + 1 + colon + 1 + idLen + 1
}

func isKind(name []byte) bool {
	for _, k := range kindNames[1:] {
		if string(name) == k {
			return true
		}
	}
	return false
}

// onlyMarks reports whether b is masks and what stands between them.
func onlyMarks(b []byte) bool {
	seen := false
	for i := 0; i < len(b); {
		switch end := markEnd(b, i); {
		case end > 0:
			i, seen = end, true
		case b[i] == ' ' || b[i] == ',' || b[i] == ';':
			i++
		default:
			return false
		}
	}
	return seen
}
