package otlp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Partial is what a collector says that it did not take of a request that it took
// (the field 1 of its answer, and of that the fields 1, a number, and 2, a text).
func Partial(answer []byte) (rejected int64, said string) {
	Fields(answer, func(field uint64, _ uint64, p []byte) {
		if field != 1 {
			return
		}
		Fields(p, func(field, n uint64, text []byte) {
			switch field {
			case 1:
				rejected = int64(n)
			case 2:
				said = string(text)
			}
		})
	})
	return rejected, said
}

// Busy reports whether a status says that the same request may be taken later.
func Busy(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// RetryAfter is what a collector says of when to try again, in seconds or as a date,
// which is held against that of its answer; 0: it says nothing.
func RetryAfter(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(text)
	now, err2 := http.ParseTime(h.Get("Date"))
	if err != nil || err2 != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}

// ParseHeaders reads headers as OTEL_EXPORTER_OTLP_HEADERS has them:
// name=value, separated by commas, values percent-encoded. An error tells no
// value.
func ParseHeaders(text string) (http.Header, error) {
	h := http.Header{}
	for i, pair := range strings.Split(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		name = strings.TrimSpace(name)
		if !ok || err != nil || name == "" || strings.ContainsAny(name, " \t\r\n:()<>@,;\\\"/[]?={}") ||
			strings.ContainsAny(value, "\r\n\x00") {
			return nil, fmt.Errorf("header %d is not name=value, with what is not plain in the value percent-encoded", i+1)
		}
		h.Add(name, value)
	}
	return h, nil
}

// Address is a URL that a collector may be at; it has no path if none was given. An
// error does not tell the address.
func Address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("is no URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("is no http or https URL, such as http://localhost:4318")
	case u.User != nil:
		return nil, errors.New("has user info in it; put what it stands for into OTEL_EXPORTER_OTLP_HEADERS")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("has a query or a fragment; give it without")
	}
	return u, nil
}
