package main

import (
	"fmt"
	"strings"
	"time"

	"runloop.dev/rlp/agents/sdk"
)

var netCommands = map[string]command{
	"http":    {1, http},    // URL
	"request": {4, request}, // METHOD URL HEADERS BODY
	"header":  {2, header},  // URL NAME
	"within":  {2, within},  // DURATION URL
	"size":    {1, size},    // URL
}

// http gets a URL and says its status and body.
func http(a []string) (string, error) { return said(sdk.HTTP(sdk.HTTPRequest{URL: a[0]})) }

// request makes any request. Headers are "A: b; C: d", or "-" for none.
func request(a []string) (string, error) {
	req := sdk.HTTPRequest{Method: a[0], URL: a[1], Headers: map[string]string{}, Body: []byte(a[3])}
	for pair := range strings.SplitSeq(a[2], ";") {
		if name, value, ok := strings.Cut(pair, ":"); ok {
			req.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return said(sdk.HTTP(req))
}

func header(a []string) (string, error) {
	resp, err := sdk.HTTP(sdk.HTTPRequest{URL: a[0]})
	return resp.Headers[a[1]], err
}

func within(a []string) (string, error) {
	d, err := time.ParseDuration(a[0])
	if err != nil {
		return "", err
	}
	return said(sdk.HTTP(sdk.HTTPRequest{URL: a[1], Timeout: d}))
}

// size gets a URL and says how long its body is.
func size(a []string) (string, error) {
	resp, err := sdk.HTTP(sdk.HTTPRequest{URL: a[0]})
	return fmt.Sprint(len(resp.Body)), err
}

func said(resp sdk.HTTPResponse, err error) (string, error) {
	return fmt.Sprintf("%d %s", resp.Status, resp.Body), err
}
