package bgp

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// outcomes of an UPDATE that is not as it should be.
const (
	taken = "taken" // routes arrive as said
	reset = "reset"
)

// z returns n zero bytes.
func z(n int) []byte { return make([]byte, n) }

var (
	aOrigin = attr(flagTransitive, attrOrigin, 0)
	aPath   = attr(flagTransitive, attrASPath)
	aPref   = attr(flagTransitive, attrLocalPref, 0, 0, 0, 100)
	aRT     = attr(flagOptional|flagTransitive, attrCommunities, []byte(rt)...)
	mac1    = []byte{48, 2, 0, 0, 0, 0, 1}
	label   = []byte{0, 0, 100}
	host4   = []byte{32, 10, 0, 0, 1}
	good    = nlri(2, z(8), z(10), z(4), mac1, host4, label)
)

// with returns an UPDATE of routes with the usual attributes.
func with(nlri ...[]byte) []byte { return body(reachOf(nlri...), aOrigin, aPath, aPref, aRT) }

// also returns an UPDATE of one good route with the usual attributes and one more.
func also(a []byte) []byte { return body(reachOf(good), aOrigin, aPath, aPref, aRT, a) }

// community returns the good route with one community only.
func community(b ...byte) []byte {
	return body(reachOf(good), aOrigin, aPath, aPref, attr(flagOptional|flagTransitive, attrCommunities, b...))
}

func hop(b ...byte) []byte {
	return body(attr(flagOptional, attrReach, slices.Concat([]byte{0, afi, safi, byte(len(b))}, b, []byte{0}, good)...), aOrigin, aPath, aPref, aRT)
}

func pmsi(b ...byte) []byte {
	return body(reachOf(nlri(3, z(8), z(4), host4)), aOrigin, aPath, aPref, aRT, attr(flagOptional|flagTransitive, attrPMSI, b...))
}

func type2(parts ...[]byte) []byte {
	return with(nlri(2, append([][]byte{z(8), z(10), z(4)}, parts...)...), good)
}

// malformed has for each message what is to come of it: reset, taken, or the reasons of what is left out, while the good route
// beside it, if there is one (and), arrives.
var malformed = []struct {
	name string
	body []byte
	want string
	and  bool
}{
	// Of one route.
	{"type 2, IP of 33 bits", type2(mac1, []byte{33, 10, 0, 0, 1, 0}, label), "ip-length", true},
	{"type 2, IP of 32 bits without it", type2(mac1, []byte{32}), "length", true},
	{"type 2, no label", type2(mac1, host4), "labels", true},
	{"type 2, label of two bytes", type2(mac1, host4, z(2)), "labels", true},
	{"type 2, three labels", type2(mac1, host4, label, label, label), "labels", true},
	{"type 2, MAC of 40 bits", type2([]byte{40, 2, 0, 0, 0, 0, 1}, host4, label), "mac-length", true},
	{"type 2, MAC of 0 bits", type2([]byte{0, 2, 0, 0, 0, 0, 1}, host4, label), "mac-length", true},
	{"type 2, length 0", with(nlri(2), good), "length", true},
	{"type 2, length 3", with(nlri(2, z(3)), good), "length", true},
	{"type 1, length 24", with(nlri(1, z(24)), good), "length", true},
	{"type 1, length 26", with(nlri(1, z(26)), good), "length", true},
	{"type 1, length 0", with(nlri(1), good), "length", true},
	{"type 1, no label", with(nlri(1, z(8), z(10), z(4)), good), "length", true},
	{"type 1, two labels", with(nlri(1, z(8), z(10), z(4), label, label), good), "length", true},
	{"type 3, IP of 0 bits", with(nlri(3, z(8), z(4), z(1)), good), "ip-length", true},
	{"type 3, IP of 24 bits", with(nlri(3, z(8), z(4), []byte{24, 1, 2, 3}), good), "ip-length", true},
	{"type 3, a byte too many", with(nlri(3, z(8), z(4), host4, z(1)), good), "length", true},
	{"type 3, length 0", with(nlri(3), good), "length", true},
	{"type 4, IP of 0 bits", with(nlri(4, z(8), z(10), z(1)), good), "ip-length", true},
	{"type 4, length 0", with(nlri(4), good), "length", true},
	{"type 4, no address", with(nlri(4, z(8), z(10)), good), "length", true},
	{"type 4, IP of 33 bits", with(nlri(4, z(8), z(10), []byte{33}, z(5)), good), "ip-length", true},
	{"type 4, a byte too many", with(nlri(4, z(8), z(10), host4, z(1)), good), "length", true},
	{"type 4, IP cut off", with(nlri(4, z(8), z(10), []byte{32, 1}), good), "length", true},
	{"type 5, prefix of 200 bits", with(nlri(5, z(8), z(10), z(4), []byte{200}, z(8), label), good), "prefix-length", true},
	{"type 5, prefix of 33 bits", with(nlri(5, z(8), z(10), z(4), []byte{33}, z(8), label), good), "prefix-length", true},
	{"type 5, IPv6 prefix of 129 bits", with(nlri(5, z(8), z(10), z(4), []byte{129}, z(32), label), good), "prefix-length", true},
	{"type 5, short", with(nlri(5, z(33)), good), "length", true},
	{"type 0", with(nlri(0, z(20)), good), "type-other", true},
	{"type 6", with(nlri(6, z(20)), good), "type-6", true},
	{"type 7", with(nlri(7, z(20)), good), "type-7", true},
	{"type 8", with(nlri(8, z(20)), good), "type-8", true},
	{"type 9", with(nlri(9, z(20)), good), "type-9", true},
	{"type 10", with(nlri(10, z(20)), good), "type-10", true},
	{"type 11", with(nlri(11, z(20)), good), "type-11", true},
	{"type 200", with(nlri(200, z(20)), good), "type-other", true},

	// Of the frame.
	{"route longer than the attribute", with(good, []byte{2, 33, 0, 0}), reset, false},
	{"route of one byte", with(good, []byte{2}), reset, false},
	{"next hop of 5 bytes", hop(z(5)...), reset, false},
	{"next hop of 0 bytes", hop(), reset, false},
	{"next hop longer than the attribute", body(attr(flagOptional, attrReach, 0, afi, safi, 16, 1, 2), aOrigin, aPath), reset, false},
	{"MP_REACH of two bytes", body(attr(flagOptional, attrReach, 0, afi), aOrigin, aPath), reset, false},
	{"MP_UNREACH of two bytes", body(attr(flagOptional, attrUnreach, 0, afi)), reset, false},
	{"MP_REACH twice", body(reachOf(good), reachOf(good), aOrigin, aPath), reset, false},
	{"MP_UNREACH twice", body(attr(flagOptional, attrUnreach, 0, afi, safi), attr(flagOptional, attrUnreach, 0, afi, safi)), reset, false},
	{"withdrawn routes beyond the message", []byte{0, 9, 0, 0}, reset, false},
	{"attributes beyond the message", []byte{0, 0, 0, 9, 1}, reset, false},
	{"attribute beyond the others, routes unknown", body([]byte{flagTransitive, attrOrigin, 9, 0}), reset, false},

	// Of what all routes share.
	{"attribute beyond the others", body(reachOf(good), aOrigin, aPath, []byte{flagTransitive, attrLocalPref, 9, 0}), "attribute-length", false},
	{"attribute of one byte", body(reachOf(good), aOrigin, aPath, []byte{flagTransitive}), "attribute-length", false},
	{"no ORIGIN", body(reachOf(good), aPath, aPref, aRT), "attribute-missing", false},
	{"no AS_PATH", body(reachOf(good), aOrigin, aPref, aRT), "attribute-missing", false},
	{"ORIGIN 3", body(reachOf(good), attr(flagTransitive, attrOrigin, 3), aPath), "origin", false},
	{"ORIGIN of two bytes", body(reachOf(good), attr(flagTransitive, attrOrigin, 0, 0), aPath), "origin", false},
	{"ORIGIN optional", body(reachOf(good), attr(flagOptional, attrOrigin, 0), aPath), "attribute-flags", false},
	{"AS_PATH with an empty segment", body(reachOf(good), aOrigin, attr(flagTransitive, attrASPath, 2, 0)), "as-path", false},
	{"AS_PATH cut off", body(reachOf(good), aOrigin, attr(flagTransitive, attrASPath, 2, 2, 0, 0, 0, 1)), "as-path", false},
	{"AS_PATH with a segment of type 9", body(reachOf(good), aOrigin, attr(flagTransitive, attrASPath, 9, 1, 0, 0, 0, 1)), "as-path", false},
	{"own AS", body(reachOf(good), aOrigin, attr(flagTransitive, attrASPath, 2, 1, 0, 0, 0xfd, 0xe8)), "as-loop", false},
	{"own ORIGINATOR_ID", also(attr(flagOptional, attrOriginator, 192, 0, 2, 1)), "originator-loop", false},
	{"ORIGINATOR_ID of three bytes", also(attr(flagOptional, attrOriginator, 192, 0, 2)), "originator", false},
	{"own CLUSTER_LIST", also(attr(flagOptional, attrClusters, 1, 1, 1, 1, 192, 0, 2, 1)), "cluster-loop", false},
	{"CLUSTER_LIST of five bytes", also(attr(flagOptional, attrClusters, z(5)...)), "cluster-list", false},
	{"LOCAL_PREF of three bytes", body(reachOf(good), aOrigin, aPath, attr(flagTransitive, attrLocalPref, z(3)...)), "local-pref", false},
	{"MED of three bytes", also(attr(flagOptional, attrMED, z(3)...)), "med", false},
	{"AS_PATH with AS 0", body(reachOf(good), aOrigin, attr(flagTransitive, attrASPath, 2, 1, 0, 0, 0, 0)), "as-path", false},
	{"communities of length 7", community(z(7)...), "communities-length", false},
	{"communities of length 0", community(), "communities-length", false},
	{"129 communities", community(z(129 * 8)...), "communities-many", false},
	{"PMSI of four bytes", pmsi(z(4)...), "pmsi", false},
	{"PMSI of ingress replication without an address", pmsi(0, 6, 0, 0, 100), "pmsi", false},
	{"unknown well-known attribute", also(attr(flagTransitive, 99, 1)), "attribute-flags", false},
	{"another family", body(attr(flagOptional, attrReach, 0, 1, 1, 4, 1, 2, 3, 4, 0, 8, 10), aOrigin, aPath), "family", false},

	// Sound in form: the speaker judges what they say.
	{"no communities", body(reachOf(good), aOrigin, aPath), taken, true},
	{"community of EVPN, subtype 4", community(6, 4, 0, 0, 0, 0, 0, 0), taken, true},
	{"subtype 6, DF election", community(6, 6, 0, 0, 0, 0, 0, 0), taken, true},
	{"subtype 8, ND flags", community(6, 8, 1, 0, 0, 0, 0, 0), taken, true},
	{"subtype 10", community(6, 10, 0, 0, 0, 0, 0, 0), taken, true},
	{"subtype 127", community(6, 127, 0, 0, 0, 0, 0, 0), taken, true},
	{"next hop 0.0.0.0", hop(0, 0, 0, 0), taken, true},
	{"next hop of IPv6", hop(z(16)...), taken, true},
	{"next hop of IPv6 with a link-local one", hop(z(32)...), taken, true},
	{"unknown optional attribute", also(attr(flagOptional|flagTransitive|flagPartial, 99, 1)), taken, true},
	{"ORIGIN twice", also(attr(flagTransitive, attrOrigin, 9)), taken, true},
	{"MED", also(attr(flagOptional, attrMED, 0, 0, 0, 1)), taken, true},
	{"AS_PATH with confederations", body(reachOf(good), aOrigin, attr(flagTransitive, attrASPath, 3, 1, 0, 0, 0, 1)), taken, true},
	{"group MAC", with(nlri(2, z(8), z(10), z(4), []byte{48, 1, 0, 0, 0, 0, 1, 0}, label)), taken, true},
	{"type 5 with host bits", with(nlri(5, z(8), z(10), z(4), []byte{8, 10, 1, 1, 1}, z(4), label)), taken, true},
	{"type 3 without PMSI", with(nlri(3, z(8), z(4), host4)), taken, true},
}

// Our AS may be in a path as often as it is set.
func TestOwnAS(t *testing.T) {
	own := []byte{0, 0, 0xfd, 0xe8}
	for allowed := range 3 {
		for times := range 4 {
			var got said
			d := decoder{agreement: internal}
			d.ownAS = allowed
			v := slices.Concat([]byte{2, byte(times + 1), 0, 0, 0, 1}, bytes.Repeat(own, times))
			if err := d.update(body(reachOf(good), aOrigin, attr(flagTransitive, attrASPath, v...)), &got); err != nil || len(got.routes) == 1 != (times <= allowed) {
				t.Errorf("%d times of %d allowed: %d routes, %v, %v", times, allowed, len(got.routes), got.left, err)
			}
		}
	}
}

func TestMalformed(t *testing.T) {
	for _, m := range malformed {
		var got said
		d := decoder{agreement: internal}
		err := d.update(m.body, &got)
		is := strings.Join(got.left, " ")
		switch {
		case err != nil:
			is = reset
		case is == "":
			is = taken
		}
		if is != m.want || len(got.routes) != map[bool]int{true: 1}[m.and] {
			t.Errorf("%s: %s, %d routes (%v), want %s", m.name, is, len(got.routes), err, m.want)
		}
		if err != nil && len(got.routes)+len(got.gone) > 0 {
			t.Errorf("%s: reset, but %+v was passed on", m.name, got)
		}
	}
}

// A route that is replaced by one that is left out is gone.
func TestLeftOutIsWithdrawn(t *testing.T) {
	for _, m := range malformed {
		if !slices.Contains([]string{"origin", "as-loop", "communities-length", "attribute-length"}, m.want) {
			continue
		}
		var got said
		d := decoder{agreement: internal}
		if err := d.update(m.body, &got); err != nil || len(got.gone) != 1 || got.gone[0].IP != ip("10.0.0.1") {
			t.Errorf("%s: %v, %+v", m.name, err, got)
		}
	}
}

func TestAttributesOfOutside(t *testing.T) {
	s := internal
	s.peerAS = 65001
	path := attr(flagTransitive, attrASPath, 2, 1, 0, 0, 0xfd, 0xe9)
	for _, c := range []struct {
		name string
		body []byte
		want int
	}{
		{"usual", body(reachOf(good), aOrigin, path), 1},
		{"own ORIGINATOR_ID, bad CLUSTER_LIST and LOCAL_PREF", body(reachOf(good), aOrigin, path, attr(flagOptional, attrOriginator, 192, 0, 2, 1), attr(flagOptional, attrClusters, 1), attr(flagTransitive, attrLocalPref)), 1},
		{"empty AS_PATH", body(reachOf(good), aOrigin, aPath), 0},
		{"confederation", body(reachOf(good), aOrigin, attr(flagTransitive, attrASPath, 3, 1, 0, 0, 0xfd, 0xe9)), 0},
	} {
		var got said
		d := decoder{agreement: s}
		if err := d.update(c.body, &got); err != nil || len(got.routes) != c.want {
			t.Errorf("%s: %v, %+v", c.name, err, got)
		}
	}
}

func TestOpen(t *testing.T) {
	o := open{as: 70000, hold: 9e9, id: [4]byte{192, 0, 2, 1}}
	m := o.marshal()
	got, err := parseOpen(m[headerLen:])
	if err != nil || got.as != 70000 || got.hold != 9e9 || got.id != o.id || !got.family || !got.refresh || !got.extended || !got.as4 || !got.ends || got.restart != 0 {
		t.Errorf("%v, %+v", err, got)
	}
	open := func(params ...byte) []byte {
		return append([]byte{4, 0xfd, 0xe8, 0, 90, 192, 0, 2, 1, byte(len(params))}, params...)
	}
	edit := func(at int, v byte) []byte { b := open(); b[at] = v; return b }
	for name, c := range map[string]struct {
		body []byte
		sub  int // of the error, -1 for none
	}{
		"no parameters":              {open(), -1},
		"version 3":                  {edit(0, 3), 1},
		"hold time 2":                {edit(4, 2), 6},
		"hold time 0":                {edit(4, 0), -1},
		"AS 0":                       {append([]byte{4, 0, 0}, open()[3:]...), 2},
		"identifier 0":               {append([]byte{4, 0xfd, 0xe8, 0, 90, 0, 0, 0, 0}, 0), 3},
		"parameter 1":                {open(1, 0), 4},
		"length too long":            {edit(9, 1), 0},
		"parameter beyond":           {open(2, 5, 0), 0},
		"capability cut":             {open(2, 1, 65), 0},
		"odd length of a capability": {open(2, 4, 65, 2, 1, 1), -1},
		"extended":                   {append(open()[:9], 255, 255, 0, 9, 2, 0, 6, capFamily, 4, 0, afi, 0, safi), -1},
	} {
		o, err := parseOpen(c.body)
		if err == nil && c.sub != -1 || err != nil && (err.Code != errOpen || int(err.Subcode) != c.sub) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "extended" && (o == nil || !o.family) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestReadMessage(t *testing.T) {
	long := setLength(append(appendHeader(nil, typeUpdate), z(5000)...))
	edit := func(at int, v byte) []byte { b := appendKeepalive(nil); b[at] = v; return b }
	for name, c := range map[string]struct {
		b     []byte
		limit int
		sub   uint8
	}{
		"keepalive":          {appendKeepalive(nil), maxMessage, 0},
		"marker":             {edit(3, 0), maxMessage, 1},
		"long keepalive":     {edit(17, 20), maxMessage, 2},
		"short":              {edit(17, 18), maxMessage, 2},
		"type 6":             {edit(18, 6), maxMessage, 3},
		"too long":           {long, maxMessage, 2},
		"long, as agreed":    {long, maxExtended, 0},
		"short OPEN":         {edit(18, typeOpen), maxMessage, 2},
		"short NOTIFICATION": {edit(18, typeNotification), maxMessage, 2},
	} {
		_, _, err := readMessage(bytes.NewReader(c.b), make([]byte, maxExtended), c.limit)
		n, _ := err.(*Notification)
		if c.sub == 0 && err != nil || c.sub != 0 && (n == nil || n.Code != errHeader || n.Subcode != c.sub) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNotificationText(t *testing.T) {
	text := "maintenance\x07, back at 5"
	m := notify(errCease, ceaseShutdown, append([]byte{byte(len(text))}, text...)...).marshal()
	if got := parseNotification(m[headerLen:]); got.Error() != `received notification 6/2, cease, shut down: "maintenance, back at 5"` {
		t.Errorf("%v", got)
	}
	for _, d := range [][]byte{nil, {0}, {9, 'a'}, {1, 0xff}} {
		if got := notify(errCease, ceaseShutdown, d...).Text(); got != "" {
			t.Errorf("%x: %q", d, got)
		}
	}
}
