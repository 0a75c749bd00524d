// Package lend is memory that changes hands: a body that a connection may read as long
// as the call lasts, and the memory of an answer that the next one may use.
package lend

import (
	"errors"
	"io"
	"sync"
	"unsafe"
	"weak"
)

// A Loan is a text that others may read until it ends: a connection can go on
// reading a body after the call that sent it is over.
type Loan struct {
	mu   sync.Mutex
	text string
	over bool
}

// End takes the text back.
func (l *Loan) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text, l.over = "", true
}

var errLoanOver = errors.New("reading a body: the call is over")

// Of lends a text.
func Of(text string) *Loan { return &Loan{text: text} }

// Reader reads the text from its beginning.
func (l *Loan) Reader() io.ReadCloser { return &lent{loan: l} }

// lent reads a loan from its beginning.
type lent struct {
	loan *Loan
	at   int
}

// Read copies: nobody holds a view once it has returned.
func (r *lent) Read(p []byte) (int, error) {
	r.loan.mu.Lock()
	defer r.loan.mu.Unlock()
	if r.loan.over {
		return 0, errLoanOver
	}
	if r.at == len(r.loan.text) {
		return 0, io.EOF
	}
	n := copy(p, r.loan.text[r.at:])
	r.at += n
	return n, nil
}

// Close does nothing: the loan ends with the call.
func (r *lent) Close() error { return nil }

// A Spare is memory of an earlier answer, which nobody needs by the time of the
// next one. It is there as long as no collection has taken it.
type Spare struct {
	first weak.Pointer[byte]
	room  int
}

// SpareOf is the memory of b, which its owner needs no more.
func SpareOf(b []byte) Spare { return Spare{weak.Make(unsafe.SliceData(b)), cap(b)} }

// Slice is the memory, empty, if it is there and large enough.
func (s Spare) Slice(room int) []byte {
	if s.room < room {
		return nil
	}
	first := s.first.Value()
	if first == nil {
		return nil
	}
	return unsafe.Slice(first, s.room)[:0]
}
