package sdk

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"time"
	"unsafe"
)

// A Level is how much a log message matters.
type Level string

// The levels of [Log].
const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// Param returns the value that the operator gave the parameter name of the
// manifest's [params] table, and whether there is one. A parameter of kind
// "dir" or "file" is an absolute path of the host.
func Param(name string) (string, bool) {
	return os.LookupEnv("RLP_PARAM_" + strings.ToUpper(name))
}

// Log puts a message in the operator's log. It needs no capability.
func Log(level Level, message string) error {
	_, err := call("log", nil, func(out unsafe.Pointer, room uint32) int64 {
		return logMessage(string(level), message, out, room)
	})
	return err
}

// Result makes one JSON value what the agent returns: "result" in the report.
// A later call replaces it. It needs no capability.
func Result(value []byte) error {
	_, err := call("result", nil, func(out unsafe.Pointer, room uint32) int64 {
		return result(view(value), out, room)
	})
	return err
}

// ResultOf is [Result] of a Go value, by encoding/json.
func ResultOf(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return Result(text)
}

// TimeNow returns the host's time in UTC. The capability is time:read:*. The
// clock of package time is the same one if that is granted and a virtual one
// if not, without an error; this call is how an agent can tell.
func TimeNow() (time.Time, error) {
	response, err := call("time_now", nil, timeNow)
	if err != nil {
		return time.Time{}, err
	}
	ns, err := number("time_now", response)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, int64(ns)).UTC(), nil
}

// TurnNext ends the turn and waits for the next input. After the last one the
// error is [io.EOF].
func TurnNext() ([]byte, error) {
	response, err := call("turn_next", nil, turnNext)
	if errors.Is(err, ErrNotExist) {
		return nil, io.EOF
	}
	return response, err
}

// SecretHandle returns the handle "rlsec_..." of a secret such as
// "runloop/mail/smtp_api_key". The guest never sees the value: the host puts it
// in where a granted request header, form field or environment variable of a
// program names the handle. The capability is secrets:read:id.
func SecretHandle(id string) (string, error) {
	response, err := call("secret_handle", nil, func(out unsafe.Pointer, room uint32) int64 {
		return secretHandle(id, out, room)
	})
	return string(response), err
}
