package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Lines of streams, in words and as they are.
func TestStreams(t *testing.T) {
	f := newFake(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.Local)
	stamp, _ := json.Marshal(at)
	f.answers["/v1/monitor"] = fmt.Sprintf(`{"time":%s,"event":"mac-moved","vni":0,"mac":"02:00:00:00:00:01","dest":"tap0","old":"10.0.0.2:4789","pinned":true}`+"\n"+
		`{"time":%s,"event":"mac-frozen","vni":9,"mac":"02:00:00:00:00:01","dest":"tap0","old":"tap1"}`+"\n"+
		`{"time":%s,"event":"row-added","proto":"evpn","row":"flood vni 7 vtep 10.0.0.2:0"}`+"\n", stamp, stamp, stamp)
	f.answers["/v1/trace"] = fmt.Sprintf(`{"time":%s,"from":"tap0","vni":7,"src":"02:00:00:00:00:01","dst":"02:00:00:00:00:02","type":"0800","len":98,"verdict":"drop","reason":"policy","lost":3}`+"\n", stamp)
	for words, want := range map[string]string{
		"monitor": "03:04:05.000006 mac-moved vni 0 mac 02:00:00:00:00:01 dest tap0 from 10.0.0.2:4789 pinned\n" +
			"03:04:05.000006 mac-frozen vni 9 mac 02:00:00:00:00:01 dest tap0 from tap1\n" +
			"03:04:05.000006 row-added proto evpn row flood vni 7 vtep 10.0.0.2:0\n",
		"trace every 2": "(3 frames are not shown: there were too many)\n03:04:05.000006 vni 7 from tap0 02:00:00:00:00:01 > 02:00:00:00:00:02 type 0800 len 98: drop policy\n",
		"-json monitor": f.answers["/v1/monitor"],
	} {
		if _, out, _ := f.do(t.Context(), strings.Fields(words)...); out != want {
			t.Errorf("%s: %q, want %q", words, out, want)
		}
	}
}

// A capture that is cut off in a block ends before it.
func TestCapture(t *testing.T) {
	f := newFake(t)
	packet := "\x06\x00\x00\x00\x10\x00\x00\x00abcd\x10\x00\x00\x00"
	for sent, want := range map[string]string{
		"":                             section,
		section:                        section,
		section + packet:               section + packet,
		section + packet + packet[:11]: section + packet,
		section + packet + packet[:13]: section + packet,
		section + "\x06\x00\x00\x00\x01xxx" + packet: section,
	} {
		f.answers["/v1/capture"] = sent
		code, out, errs := f.do(t.Context(), "capture")
		if code != 1 || out != want {
			t.Errorf("%q: %d %q %s", sent, code, out, errs)
		}
	}
	stats := "\x05\x00\x00\x00\x38\x00\x00\x00\x00\x00\x00\x00timetime" + // 5 of 9 are lost
		"\x05\x00\x08\x00\x05\x00\x00\x00\x00\x00\x00\x00" + "\x04\x00\x08\x00\x09\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "pad." + "\x38\x00\x00\x00"
	file := filepath.Join(t.TempDir(), "x.pcapng")
	f.answers["/v1/capture"] = section + packet + packet + stats
	code, out, errs := f.do(t.Context(), "capture", "port", "tap0", "-c", "2", "-w", file, "tcp", "port", "80", "-s", "60")
	text, _ := os.ReadFile(file)
	if want := "capturing on port tap0 to " + file + ", until it is interrupted\n2 packets captured\n9 packets received by filter\n5 packets dropped\n"; code != 0 || out != "" ||
		errs != want || string(text) != section+packet+packet+stats {
		t.Errorf("%d %q %q %q", code, out, errs, text)
	}
	if got, want := f.last(), "GET /v1/capture?count=2&filter=tcp+port+80&port=tap0&snaplen=60"; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
	for words, want := range map[string]string{
		"-s 0 tunnel vx ip[0] - 5 = 6": "GET /v1/capture?filter=ip%5B0%5D+-+5+%3D+6&tunnel=vx", "-- port 80": "GET /v1/capture?filter=port+80",
		"vni 7 not port 80": "GET /v1/capture?filter=not+port+80&vni=7", "port p port 80": "GET /v1/capture?filter=port+80&port=p", "-w -": "GET /v1/capture",
	} {
		if f.do(t.Context(), strings.Fields("capture "+words)...); f.last() != want {
			t.Errorf("%s: asked %q, want %q", words, f.last(), want)
		}
	}
	f.answers["/v1/capture"] = `409 {"error":"too many captures are running: end one"}`
	f.do(t.Context(), "capture", "-w", file)
	if again, _ := os.ReadFile(file); string(again) != string(text) {
		t.Error("a capture that did not begin has emptied the file")
	}
	f.answers["/v1/capture"] = `404 {"error":"port \"80\": must be one of tap0"}`
	if code, _, errs := f.do(t.Context(), "capture", "port", "80"); code != 1 || errs != "vxsctl: port \"80\": must be one of tap0; a filter that begins with \"port\" comes after \"--\"\n" {
		t.Errorf("%d %s", code, errs)
	}
}
