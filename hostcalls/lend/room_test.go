package lend

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Bodies are read as far as there is room for all, and what one had is the next one's.
func TestRoom(t *testing.T) {
	var r Room
	text, free, err := r.Read(iotest.OneByteReader(strings.NewReader("12345")), 5, 8)
	if text != "12345" || err != nil {
		t.Fatalf("control: %q %v", text, err)
	}
	_, none, err := r.Read(strings.NewReader("1234"), 5, 8)
	if !errors.Is(err, ErrFull) {
		t.Errorf("nine bytes of eight: %v", err)
	}
	none()
	none()
	if text, free, err := r.Read(strings.NewReader("123"), 5, 8); text != "123" || err != nil {
		t.Errorf("%q %v", text, err)
	} else {
		free()
	}
	free()
	if _, free, err := r.Read(strings.NewReader("123456"), 5, 8); !errors.Is(err, ErrLong) {
		t.Errorf("six bytes of five: %v", err)
	} else {
		free()
	}
	if _, free, err := r.Read(iotest.ErrReader(io.ErrUnexpectedEOF), 5, 8); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	} else {
		free()
	}
	if r.used.Load() != 0 {
		t.Errorf("%d bytes are left behind", r.used.Load())
	}
}
