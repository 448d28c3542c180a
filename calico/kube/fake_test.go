package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A fake is an API server without any knowledge of kinds: it has objects by path, lists and watches of these, and forgets changes.
type fake struct {
	web *httptest.Server

	mu      sync.Mutex
	version int
	floor   int // changes up to here are forgotten
	objects map[string]map[string]any
	changes []event
	wake    chan struct{}
	answer  map[string]int // by the name of a kind: a status for all requests
	stream  bool           // snapshots can be streams
	lists   map[string]int // by the name of a kind: how often it was listed
	begun   map[string]int // likewise: watches
	wrote   bool           // someone has done more than read, without the token of the administrator
}

type event struct {
	version int
	path    string         // of the object
	Type    string         `json:"type"`
	Object  map[string]any `json:"object"`
}

const adminToken = "admin-token"

func newFake(t *testing.T) *fake {
	f := &fake{version: 10, objects: map[string]map[string]any{}, wake: make(chan struct{}), answer: map[string]int{}, lists: map[string]int{}, begun: map[string]int{}}
	f.web = httptest.NewServer(f)
	t.Cleanup(func() { f.web.CloseClientConnections(); f.web.Close() })
	return f
}

// say has all requests of a kind answered with a status, 0 for none.
func (f *fake) say(kind string, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer[kind] = status
	f.stir()
}

// count returns how often a kind was listed and watched.
func (f *fake) count(kind string) (lists, watches int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists[kind], f.begun[kind]
}

// forget has an object go, and forgets all changes.
func (f *fake) forget(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, path)
	f.version++
	f.floor, f.changes = f.version, nil
	f.stir()
}

func (f *fake) stir() { close(f.wake); f.wake = make(chan struct{}) }

// nameOf is the name of the kind in a path: pods of /api/v1/namespaces/default/pods/a.
func nameOf(path string) (kind string, object bool) {
	part := strings.Split(strings.Trim(path, "/"), "/")
	if part = part[2:]; strings.HasPrefix(path, "/apis/") {
		part = part[1:]
	}
	if len(part) > 2 && part[0] == "namespaces" {
		part = part[2:]
	}
	return part[0], len(part) > 1
}

// in reports whether an object is in a collection, of one namespace or all.
func in(collection, path string) bool {
	i := strings.LastIndex(path, "/")
	if path[:i] == collection {
		return true
	}
	head, kind := collection[:strings.LastIndex(collection, "/")], collection[strings.LastIndex(collection, "/"):]
	return strings.HasPrefix(path, head+"/namespaces/") && strings.HasSuffix(path[:i], kind)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	kind, object := nameOf(r.URL.Path)
	f.mu.Lock()
	status := f.answer[kind]
	isAdmin := r.Header.Get("Authorization") == "Bearer "+adminToken
	f.wrote = f.wrote || r.Method != http.MethodGet && !isAdmin
	f.mu.Unlock()
	switch {
	case status != 0 && !isAdmin:
		refuse(w, status, kind+" is refused to this user")
	case r.Method != http.MethodGet:
		f.write(w, r)
	case object:
		refuse(w, http.StatusMethodNotAllowed, "objects are not read one by one here")
	case r.URL.Query().Get("watch") == "true":
		f.watch(w, r, kind)
	default:
		f.mu.Lock()
		f.lists[kind]++
		items := f.items(r.URL.Path)
		version := fmt.Sprint(f.version)
		f.mu.Unlock()
		group, word := meta(r.URL.Path)
		json.NewEncoder(w).Encode(map[string]any{"kind": word + "List", "apiVersion": group, "metadata": map[string]any{"resourceVersion": version}, "items": items})
	}
}

// items are the objects of a collection, by name.
func (f *fake) items(collection string) []map[string]any {
	list := []map[string]any{}
	paths := []string{}
	for path := range f.objects {
		if in(collection, path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		list = append(list, f.objects[path])
	}
	return list
}

// meta is what lists and bookmarks of a path are.
func meta(path string) (group, word string) {
	kind, _ := nameOf(path)
	for i := range kinds {
		k := &kinds[i]
		if k.name == kind && strings.HasPrefix(path, "/api/") == (k.group.Group == "") && (k.group.Group == "" || strings.HasPrefix(path, "/apis/"+k.group.Group+"/")) {
			return k.group.String(), k.kind
		}
	}
	return "v1", "Unknown"
}

func (f *fake) write(w http.ResponseWriter, r *http.Request) {
	var o map[string]any
	f.mu.Lock()
	defer f.mu.Unlock()
	path, kind := r.URL.Path, "MODIFIED"
	switch r.Method {
	case http.MethodDelete:
		if o = f.objects[path]; o == nil {
			refuse(w, http.StatusNotFound, "there is none")
			return
		}
		kind = "DELETED"
		delete(f.objects, path)
	case http.MethodPatch: // of a status
		var patch map[string]any
		json.NewDecoder(r.Body).Decode(&patch)
		path = strings.TrimSuffix(path, "/status")
		o = clone(f.objects[path])
		o["status"] = patch["status"]
	default:
		json.NewDecoder(r.Body).Decode(&o)
		if r.Method == http.MethodPost {
			path += "/" + o["metadata"].(map[string]any)["name"].(string)
			if f.objects[path] != nil {
				refuse(w, http.StatusConflict, "there is one")
				return
			}
			kind = "ADDED"
		}
	}
	f.version++
	o = clone(o)
	o["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(f.version)
	if kind != "DELETED" {
		f.objects[path] = o
	}
	f.changes = append(f.changes, event{f.version, path, kind, o})
	f.stir()
	if kind == "ADDED" {
		w.WriteHeader(http.StatusCreated)
	}
	json.NewEncoder(w).Encode(o)
}

func clone(o map[string]any) (c map[string]any) {
	b, _ := json.Marshal(o)
	json.Unmarshal(b, &c)
	return c
}

func (f *fake) watch(w http.ResponseWriter, r *http.Request, kind string) {
	q := r.URL.Query()
	f.mu.Lock()
	defer f.mu.Unlock()
	from := 0
	fmt.Sscan(q.Get("resourceVersion"), &from)
	send := json.NewEncoder(w)
	flush := w.(http.Flusher).Flush
	f.begun[kind]++
	if q.Get("sendInitialEvents") == "true" {
		if !f.stream {
			refuse(w, http.StatusUnprocessableEntity, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
			return
		}
		for _, o := range f.items(r.URL.Path) {
			send.Encode(event{Type: "ADDED", Object: o})
		}
		from = f.version
		send.Encode(f.bookmark(r.URL.Path, map[string]any{"k8s.io/initial-events-end": "true"}))
	} else if from < f.floor {
		refuse(w, http.StatusGone, "too old resource version")
		return
	}
	flush()
	for r.Context().Err() == nil && f.answer[kind] == 0 {
		if from < f.floor {
			send.Encode(map[string]any{"type": "ERROR", "object": failure(http.StatusGone, "too old resource version")})
			return
		}
		for _, e := range f.changes {
			if e.version > from && in(r.URL.Path, e.path) {
				send.Encode(e)
			}
		}
		if from < f.version {
			from = f.version
			send.Encode(f.bookmark(r.URL.Path, nil))
		}
		flush()
		wake := f.wake
		f.mu.Unlock()
		select {
		case <-wake:
		case <-r.Context().Done():
		}
		f.mu.Lock()
	}
}

func (f *fake) bookmark(path string, annotations map[string]any) event {
	group, word := meta(path)
	return event{Type: "BOOKMARK", Object: map[string]any{"kind": word, "apiVersion": group, "metadata": map[string]any{"resourceVersion": fmt.Sprint(f.version), "annotations": annotations}}}
}

func failure(status int, message string) map[string]any {
	reason := map[int]string{403: "Forbidden", 404: "NotFound", 409: "AlreadyExists", 410: "Expired", 422: "Invalid"}[status]
	return map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": status}
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(failure(status, message))
}
