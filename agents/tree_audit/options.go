package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// options are the agent's arguments.
type options struct {
	large int64 // files of this many bytes or more are large
	top   int   // how many entries a list has at most
}

// parseOptions reads "--large SIZE" and "--top N"; "--large=SIZE" is the same.
func parseOptions(args []string) (options, error) {
	o := options{large: 1 << 20, top: 20}
	for len(args) > 0 {
		name, value, ok := strings.Cut(args[0], "=")
		args = args[1:]
		if name != "--large" && name != "--top" {
			return o, errors.New("unknown argument " + strconv.Quote(name))
		}
		if !ok {
			if len(args) == 0 {
				return o, errors.New(name + " needs a value")
			}
			value, args = args[0], args[1:]
		}
		n, err := parseSize(value)
		if name == "--top" {
			n, err = parseCount(value)
			o.top = int(n)
		} else {
			o.large = n
		}
		if err != nil {
			return o, errors.New(name + ": " + err.Error())
		}
	}
	return o, nil
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, errors.New(strconv.Quote(s) + " is not a count")
	}
	return int64(n), nil
}

// parseSize reads a number of bytes with an optional unit: KiB, MiB, GiB or the
// decimal kB, MB, GB.
func parseSize(s string) (int64, error) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	n, err := strconv.ParseUint(s[:digits], 10, 63)
	unit, ok := map[string]uint64{
		"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9,
	}[strings.TrimSpace(s[digits:])]
	if err != nil || !ok || n > math.MaxInt64/unit {
		return 0, errors.New(strconv.Quote(s) + " is not a size such as 512KiB")
	}
	return int64(n * unit), nil
}
