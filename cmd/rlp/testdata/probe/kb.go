package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"runloop.dev/rlp/agents/sdk"
)

var kbCommands = map[string]command{
	"search": {3, search},
	"gets":   {3, gets},
}

// search prints what is found: search DOMAIN TEXT K.
func search(a []string) (string, error) {
	k, err := strconv.Atoi(a[2])
	if err != nil {
		return "", err
	}
	hits, err := sdk.KBSearch(a[0], a[1], k)
	var found []string
	for _, h := range hits {
		if h.Score <= 0 {
			return "", errors.New("a hit without a score")
		}
		found = append(found, h.Key+"="+h.Snippet)
	}
	return fmt.Sprint(len(hits), " ", strings.Join(found, "; ")), err
}

// gets reads one value many times: gets DOMAIN KEY N.
func gets(a []string) (string, error) {
	n, err := strconv.Atoi(a[2])
	if err != nil {
		return "", err
	}
	size := 0
	buf := make([]byte, 0, 4096)
	for range n {
		if buf, err = sdk.AppendKBGet(buf[:0], a[0], a[1]); err != nil {
			return "", err
		}
		size += len(buf)
	}
	return strconv.Itoa(size), nil
}
