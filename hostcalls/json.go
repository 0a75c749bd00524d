package hostcalls

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unsafe"

	"runloop.dev/rlp/internal/base/strictjson"
)

// readObject reads text, which is one JSON object. field reads the value of a key,
// which is a view of text.
func readObject(text string, field func(d *strictjson.Reader, key string) error) error {
	return ofRequest(strictjson.Object(text, field))
}

// ofRequest says of what is wrong with all of a request that it is the request.
func ofRequest(err error) error {
	if e := (*strictjson.Error)(nil); errors.As(err, &e) && e.Path == "" {
		return fmt.Errorf("the request: %w", err)
	}
	return err
}

// unknownKey is a key that a request does not have; known are those that it has.
func unknownKey(known string) error { return fmt.Errorf("no key of a request; %s are", known) }

// timeout reads a number of milliseconds; 0 is the host's own. More than the
// longest is the longest.
func timeout(d *strictjson.Reader) (time.Duration, error) {
	ms, err := d.Whole()
	switch {
	case err != nil:
		return 0, errors.New("a whole number of milliseconds is wanted")
	case ms == 0:
		return defaultTimeout, nil
	}
	return time.Duration(min(ms, uint64(longestTimeout/time.Millisecond))) * time.Millisecond, nil
}

// printable is a guest's word as an error may quote it.
func printable(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	q := strconv.QuoteToASCII(s)
	return q[1 : len(q)-1]
}

// bytesOf views s.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
