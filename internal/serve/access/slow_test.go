package access

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever guesses waits longer each time, and not longer than a minute; whoever
// does not, does not wait.
func TestGuessesAreSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kitOf(t, nil)
		_, text := k.token(t, nil)
		guess := func(token string) time.Duration {
			_, err := k.Authenticate(bearer(t, token))
			if err == nil {
				return 0
			}
			return asDenied(err).RetryAfter
		}
		for range freeTries {
			if wait := guess(newToken().text); wait != 0 {
				t.Fatalf("waits %v before it failed often", wait)
			}
		}
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			if wait := guess(text); wait != want*time.Second {
				t.Fatalf("waits %v, want %vs: even the good token is not judged", wait, want)
			}
			time.Sleep(want*time.Second - time.Millisecond)
			if wait := guess(text); wait != time.Millisecond {
				t.Fatalf("judged %v too early", wait)
			}
			time.Sleep(time.Millisecond)
			if wait := guess(newToken().text); wait != 0 {
				t.Fatalf("waits %v after its time", wait)
			}
		}
		other := bearer(t, text)
		other.RemoteAddr = "192.0.2.2:1"
		if got := k.status(t, withPeer(other, "192.0.2.2")); got != http.StatusOK {
			t.Errorf("somebody elsewhere waits: %d", got)
		}
		time.Sleep(forgetAfter + maxWait)
		if got := k.status(t, bearer(t, text)); got != http.StatusOK {
			t.Errorf("nothing is forgotten: %d", got)
		}
		if failed, held := k.Counts(); failed != freeTries+8 || held != 16 {
			t.Errorf("counted %d, %d", failed, held)
		}
	})
}

// Guesses at one token are slowed wherever they come from, and its holder is not
// kept out of where they were let in.
func TestGuessesAtOneTokenAreSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kitOf(t, nil)
		_, text := k.token(t, nil)
		holder := withPeer(bearer(t, text), "192.0.2.9")
		if k.status(t, holder) != http.StatusOK {
			t.Fatal("control: the token is not good")
		}
		wrong := wrongOf(text)
		held := 0
		for i := range 100 {
			from := fmt.Sprintf("198.51.100.%d", i)
			if k.status(t, withPeer(bearer(t, wrong), from)) == http.StatusTooManyRequests {
				held++
			}
		}
		if held != 100-freeTries {
			t.Errorf("%d of 100 waited", held)
		}
		if got := k.status(t, holder); got != http.StatusOK {
			t.Errorf("the holder is locked out: %d", got)
		}
		if got := k.status(t, withPeer(bearer(t, text), "203.0.113.1")); got != http.StatusTooManyRequests {
			t.Errorf("from somewhere new: %d", got)
		}
	})
}

// Whoever shares an address with a guesser, and came in from it before, is let in
// while the guesser waits. Guesses that name the token are slowed there too, and
// count as guesses from there.
func TestAGuesserShutsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kitOf(t, nil)
		_, text := k.token(t, nil)
		_, fresh := k.token(t, func(o *Token) { o.Name = "fresh" })
		at := func(token string) int { return k.status(t, withPeer(bearer(t, token), "192.0.2.9")) }
		if at(text) != http.StatusOK {
			t.Fatal("control: the token is not good")
		}
		for range 3 * freeTries {
			at(newToken().text)
		}
		if got := at(newToken().text); got != http.StatusTooManyRequests {
			t.Fatalf("control: the guesser does not wait: %d", got)
		}
		if got := at(fresh); got != http.StatusTooManyRequests {
			t.Errorf("a token that never came from there is judged: %d", got)
		}
		if got := at(text); got != http.StatusOK {
			t.Errorf("the holder is shut out: %d", got)
		}
		time.Sleep(forgetAfter / 2)
		at(text)
		time.Sleep(forgetAfter/2 + maxWait) // the guesser is forgotten, the holder is not
		wrong := wrongOf(text)
		for range freeTries {
			if got := at(wrong); got != http.StatusUnauthorized {
				t.Fatalf("a guess at the token: %d", got)
			}
		}
		for _, token := range []string{wrong, newToken().text} {
			if got := at(token); got != http.StatusTooManyRequests {
				t.Errorf("after guesses at a token that came from there: %d", got)
			}
		}
	})
}

// As many guesses at once are no more guesses.
func TestGuessesAtOnce(t *testing.T) {
	tr := newTries()
	now := time.Unix(1_000_000_000, 0)
	judged, wg := 0, sync.WaitGroup{}
	for range 200 {
		wg.Go(func() { tr.attempt(now, "a", "", func() bool { judged++; return false }) })
	}
	wg.Wait()
	if judged != freeTries {
		t.Errorf("%d were judged", judged)
	}
}

// However many knock, little is remembered; who failed last is.
func TestTriesAreBounded(t *testing.T) {
	tr := newTries()
	now := time.Unix(1_000_000_000, 0)
	no := func() bool { return false }
	for range freeTries {
		tr.attempt(now, "guesser", "", no)
	}
	for i := range 3 * maxTries {
		tr.attempt(now, "x"+strconv.Itoa(i), "", no)
		if i%1000 == 0 {
			if _, wait := tr.attempt(now, "guesser", "", no); wait == 0 && i < maxTries-1000 {
				t.Fatalf("forgotten after %d others", i)
			}
		}
	}
	if lists := tr.few.Len() + tr.slow.Len() + tr.in.Len(); len(tr.all) != maxTries || lists != maxTries {
		t.Errorf("%d and %d are remembered", len(tr.all), lists)
	}
}

// Who waits, or came in, is remembered whoever else knocks; who comes while all that
// are remembered wait shares one wait, and is free again when others are.
func TestWhoWaitsIsNotForgotten(t *testing.T) {
	tr, now := newTries(), time.Unix(1_000_000_000, 0)
	no, yes := func() bool { return false }, func() bool { return true }
	waits := func(key string) bool {
		_, wait := tr.attempt(now, key, "", no)
		return wait > 0
	}
	if ok, _ := tr.attempt(now, "home", "holder", yes); !ok {
		t.Fatal("control: the holder does not come in")
	}
	for range freeTries + 5 { // it waits for a minute
		tr.attempt(now, "guesser", "", no)
		now = now.Add(maxWait)
	}
	now = now.Add(-maxWait)
	for i := range 2 * maxTries { // who fail once
		tr.attempt(now, "few"+strconv.Itoa(i), "", no)
	}
	if !waits("guesser") {
		t.Error("who waits was forgotten for who failed once")
	}
	for i := range maxTries { // and who wait themselves
		for range freeTries {
			tr.attempt(now, "slow"+strconv.Itoa(i), "", no)
		}
	}
	if !waits("guesser") || !waits("slow7") || !waits("new") {
		t.Error("who waits was forgotten for who waits too, or is not asked to wait")
	}
	if ok, _ := tr.attempt(now, "home", "holder", yes); !ok {
		t.Error("who came in was forgotten")
	}
	if ok, wait := tr.attempt(now, "elsewhere", "holder", yes); ok || wait == 0 {
		t.Error("control: the holder comes in where nothing is remembered of it")
	}
	now = now.Add(2 * maxWait)
	if ok, _ := tr.attempt(now, "elsewhere", "holder", yes); !ok {
		t.Error("when nobody waits any more")
	}
	if lists := tr.few.Len() + tr.slow.Len() + tr.in.Len(); len(tr.all) > maxTries || lists != len(tr.all) {
		t.Errorf("%d and %d are remembered", len(tr.all), lists)
	}
	for i := range maxTries {
		tr.attempt(now, "at"+strconv.Itoa(i), "holder", yes)
	}
	if tr.in.Len() > maxKnown {
		t.Errorf("%d that came in are remembered", tr.in.Len())
	}
}
