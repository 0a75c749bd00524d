package model

// Parts passes an answer on as it comes, through what takes something out of it: the
// text, and the arguments of each call, which come one after the other.
type Parts struct {
	To func(Piece)
	// Stream makes what takes out of one text that comes in pieces; end gives what it
	// held back.
	Stream func() func(piece []byte, end bool) []byte

	clean func(piece []byte, end bool) []byte
	last  Piece // of what clean holds back
	began bool
}

// Take passes the next part on.
func (s *Parts) Take(next Piece) {
	if next.IsCall != s.last.IsCall || next.Call != s.last.Call {
		s.flush()
	}
	s.began, s.last = true, Piece{IsCall: next.IsCall, Call: next.Call}
	if next.ID != "" || next.Name != "" {
		s.To(Piece{IsCall: true, Call: next.Call, ID: s.whole(next.ID), Name: s.whole(next.Name)})
	}
	if s.clean == nil {
		s.clean = s.Stream()
	}
	s.say(s.clean([]byte(next.Text+next.Arguments), false))
}

// End passes on what was held back; of an answer that came in no parts, which was
// remembered or is rlp's own, all of it. a is nil where there is none.
func (s *Parts) End(a *Answer) {
	if a != nil && !s.began {
		for _, p := range a.pieces() {
			s.Take(p)
		}
	}
	s.flush()
}

func (s *Parts) flush() {
	if s.clean != nil {
		s.say(s.clean(nil, true))
		s.clean = nil
	}
}

func (s *Parts) whole(text string) string { return string(s.Stream()([]byte(text), true)) }

func (s *Parts) say(text []byte) {
	next := s.last
	if next.IsCall {
		next.Arguments = string(text)
	} else {
		next.Text = string(text)
	}
	if len(text) > 0 {
		s.To(next)
	}
}

// pieces are the answer in parts.
func (a *Answer) pieces() []Piece {
	list := []Piece{{Text: a.Text}}
	for i, c := range a.ToolCalls {
		list = append(list, Piece{IsCall: true, Call: i, ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return list
}
