package main

import (
	"errors"

	"runloop.dev/rlp/agents/sdk"
)

// maskCommands go by the names that a list shows.
var maskCommands = map[string]command{
	"first": {1, first},
	"copy":  {2, copyFirst},
}

// first reads the first key that a list shows.
func first(a []string) (string, error) {
	_, value, err := firstOf(a[0])
	return string(value), err
}

// copyFirst writes what first reads to another domain, under the same key.
func copyFirst(a []string) (string, error) {
	key, value, err := firstOf(a[0])
	if err != nil {
		return "", err
	}
	if a[0] != a[1] {
		key = "copy"
	}
	_, err = sdk.KBPut(a[1], key, value)
	return "ok", err
}

func firstOf(domain string) (string, []byte, error) {
	entries, err := sdk.KBList(domain, "")
	if err != nil {
		return "", nil, err
	}
	if len(entries) == 0 {
		return "", nil, errors.New("nothing there")
	}
	value, err := sdk.KBGet(domain, entries[0].Key)
	return entries[0].Key, value, err
}
