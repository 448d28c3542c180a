package selector

import "testing"

// Selectors made of others have the text that the parser would read as the same.
func TestCombine(t *testing.T) {
	parse := func(text string) *Selector {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	either := parse(`has(a) || b == "c"`)
	for want, s := range map[string]*Selector{
		`all()`:                             And(nil, nil),
		`has(a)`:                            And(nil, Has("a")),
		`(has(a) || b == "c") && has(d)`:    And(either, Has("d")),
		`has(a) && has(b) && has(c)`:        And(parse(`has(a) && has(b)`), Has("c")),
		`!(has(a) || b == "c")`:             either.Not(),
		`has(a) || b == "c"`:                either.Not().Not(),
		`n == "x"`:                          In("n", "x", "x"),
		`n in {"x", "y"}`:                   In("n", "y", "x"),
		`has(p.a) || p.b == "c"`:            either.Prefixed("p."),
		`!p.a in {"x"}`:                     parse(`!a in {'x'}`).Prefixed("p."),
		`has(n) && !has(a)`:                 parse(`all() && !has(a)`).Replace("all()", Has("n")),
		`has(a)` + ` && ` + `has(n)`:        parse(`has(a) && !global()`).Replace("global()", Has("n").Not()),
		`all() || has(n)`:                   parse(`all() || global()`).Replace("global()", Has("n")),
		`has(x) && has(y) && a != "all()"`:  parse(`all() && a != 'all()'`).Replace("all()", parse(`has(x) && has(y)`)),
		`!(has(x) && has(y)) && has(p.all)`: parse(`!all() && has(p.all)`).Replace("all()", parse(`has(x) && has(y)`)),
	} {
		if s.String() != want {
			t.Errorf("%s, want %s", s, want)
		}
		if again := parse(s.String()); again.String() != want {
			t.Errorf("%s is read as %s", s, again)
		}
	}
	if either.String() != `has(a) || b == "c"` {
		t.Errorf("changed: %s", either)
	}
}
