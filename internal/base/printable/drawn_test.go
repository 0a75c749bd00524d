package printable_test

import (
	"testing"
	"unicode/utf8"

	"runloop.dev/rlp/internal/base/printable"
)

// A letter is taken for the one that it is drawn like, whatever its frame, style and
// marks. Control: letters and signs that are drawn otherwise are themselves.
func TestDrawn(t *testing.T) {
	for c, list := range map[rune]string{
		'R': "RＲⓇ🅁🅡🆁🇷🄡ᴿℛℜℝ𝐑𝑹𝓡𝕽𝖱𝚁ŔŖŘȐȒṘṞʀƦᎡꭱꮢꓣ®",
		'L': "LＬⓁ🄻🅛🅻🇱🄛ᴸℒ𝐋𝙻ĹĻĽḶŁʟⅬᒪᏞꮮ",
		'P': "PＰⓅ🄿🅟🅿🇵🄟ᴾℙ𝐏𝙿ṔṖƤᴘРΡᏢꮲ𝚸℗",
		'_': "_＿﹍︳ˍ‗▁",
		'Z': "ZŽⓏ🆉",
	} {
		for _, r := range list {
			if got := printable.Drawn(r); got != c {
				t.Errorf("%U %c is drawn like %c, and not like %c", r, r, got, c)
			}
		}
	}
	for _, r := range "rlpщ漢⑴٣ñ½㏚-~ |\x1b\u200b" {
		if got := printable.Drawn(r); got != r {
			t.Errorf("control: %U %c is drawn like %c", r, r, got)
		}
	}
	for r := range rune(utf8.MaxRune + 1) {
		if got := printable.Drawn(r); got != r && got != '_' && (got < 'A' || got > 'Z') {
			t.Fatalf("%U is drawn like %U", r, got)
		}
	}
}
