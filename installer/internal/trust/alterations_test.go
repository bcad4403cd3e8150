package trust

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// alterations yields evidence that differs from a piece in one field.
func alterations(tb testing.TB, p piece, donors []piece) map[string]Evidence {
	tb.Helper()
	all := map[string]Evidence{}
	add := func(what string, doc any, build func(string) Evidence) {
		text, err := json.Marshal(doc)
		if err != nil {
			tb.Fatal(err)
		}
		all[what] = build(string(text))
	}
	inPayload := func(text string) Evidence {
		return Evidence{Format: p.ev.Format, Payload: []byte(text), Annotations: p.ev.Annotations}
	}
	alterDocument(tb, string(p.ev.Payload), func(what string, doc any) { add("payload "+what, doc, inPayload) })
	for name, value := range p.ev.Annotations {
		inAnnotation := func(text string) Evidence {
			annotations := maps.Clone(p.ev.Annotations)
			annotations[name] = text
			return Evidence{Format: p.ev.Format, Payload: p.ev.Payload, Annotations: annotations}
		}
		if strings.HasPrefix(value, "{") {
			alterDocument(tb, value, func(what string, doc any) { add(name+" "+what, doc, inAnnotation) })
		}
		for _, other := range donors {
			if theirs := other.ev.Annotations[name]; theirs != value && theirs != "" {
				all[name+" of "+other.name] = inAnnotation(theirs)
			}
		}
		annotations := maps.Clone(p.ev.Annotations)
		delete(annotations, name)
		if name != artifact.AnnotationSignature {
			all["without "+name] = Evidence{Format: p.ev.Format, Payload: p.ev.Payload, Annotations: annotations}
		}
	}
	if p.ev.Format != FormatBundle {
		return all
	}
	for _, other := range donors {
		for what, doc := range grafts(tb, p.ev.Payload, other.ev.Payload) {
			add(what+" of "+other.name, doc, inPayload)
		}
	}
	return all
}

// alterDocument changes each leaf of a JSON document by itself.
func alterDocument(tb testing.TB, text string, emit func(what string, doc any)) {
	tb.Helper()
	decode := func() any {
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var doc any
		if err := dec.Decode(&doc); err != nil {
			tb.Fatal(err)
		}
		return doc
	}
	for path := range leaves(decode(), "") {
		for way := range 6 {
			doc := decode()
			if alterLeaf(doc, strings.Split(path, "/")[1:], way) {
				emit(fmt.Sprintf("%s, way %d", path, way), doc)
			}
		}
	}
}

func leaves(doc any, path string) map[string]bool {
	found := map[string]bool{}
	switch d := doc.(type) {
	case map[string]any:
		for k, v := range d {
			maps.Copy(found, leaves(v, path+"/"+k))
		}
	case []any:
		for i, v := range d {
			maps.Copy(found, leaves(v, fmt.Sprintf("%s/%d", path, i)))
		}
	}
	if path != "" {
		found[path] = true
	}
	return found
}

// alterLeaf changes the value at a path in one of several ways; it reports false
// for a way that the value does not have.
func alterLeaf(doc any, path []string, way int) bool {
	var value any
	var set func(any)
	var remove func()
	switch d := doc.(type) {
	case map[string]any:
		value, set, remove = d[path[0]], func(v any) { d[path[0]] = v }, func() { delete(d, path[0]) }
	case []any:
		var i int
		if _, err := fmt.Sscan(path[0], &i); err != nil {
			return false
		}
		value, set, remove = d[i], func(v any) { d[i] = v }, func() { d[i] = map[string]any{} }
	}
	if len(path) > 1 {
		return alterLeaf(value, path[1:], way)
	}
	text, isText := value.(string)
	raw, err := base64.StdEncoding.DecodeString(text)
	isBytes := isText && err == nil && len(raw) > 1
	number, isNumber := value.(json.Number)
	if isText && !isBytes && text != "" && strings.Trim(text, "0123456789") == "" {
		number, isNumber = json.Number(text), true
	}
	switch {
	case way == 0:
		remove()
	case way == 1 && isText:
		set("")
	case way == 2 && isBytes:
		raw[len(raw)/2] ^= 1
		set(base64.StdEncoding.EncodeToString(raw))
	case way == 3 && isBytes:
		set(base64.StdEncoding.EncodeToString(raw[:len(raw)-1]))
	case way == 4 && isText && !isBytes:
		set(text + "x")
	case (way == 4 || way == 5) && isNumber:
		n, err := number.Int64()
		if err != nil {
			return false
		}
		next := json.Number(fmt.Sprint(n + int64(way*2-9)))
		if isText {
			set(next.String())
		} else {
			set(next)
		}
	default:
		return false
	}
	return true
}

// grafts puts parts of one bundle into another.
func grafts(tb testing.TB, into, from []byte) map[string]any {
	tb.Helper()
	decode := func(text []byte) map[string]any {
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			tb.Fatal(err)
		}
		return doc
	}
	all := map[string]any{}
	for _, path := range []string{
		"dsseEnvelope", "dsseEnvelope/payload", "dsseEnvelope/signatures", "verificationMaterial", "verificationMaterial/certificate",
		"verificationMaterial/publicKey", "verificationMaterial/tlogEntries", "verificationMaterial/timestampVerificationData",
	} {
		doc, donor := decode(into), decode(from)
		outer, inner, nested := strings.Cut(path, "/")
		if nested {
			target, ok1 := doc[outer].(map[string]any)
			source, ok2 := donor[outer].(map[string]any)
			if !ok1 || !ok2 || source[inner] == nil {
				continue
			}
			target[inner] = source[inner]
		} else if donor[outer] != nil {
			doc[outer] = donor[outer]
		}
		all[path] = doc
	}
	return all
}
