package sigstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/digitorus/pkcs7"
	"github.com/sigstore/sigstore-go/pkg/root"
)

// VerifyTimestamps returns the times that timestamp authorities vouch for, at
// least one. Of several timestamps by one authority the first counts, and those
// by others are skipped.
func VerifyTimestamps(s *Signature, material root.TrustedMaterial) ([]time.Time, error) {
	if len(s.Timestamps) == 0 {
		return nil, errors.New("no timestamp")
	}
	if len(s.Timestamps) > maxTimestamps {
		return nil, fmt.Errorf("%d timestamps, more than %d", len(s.Timestamps), maxTimestamps)
	}
	var times []time.Time
	var refusals []error
	seen := map[string]bool{}
	for _, stamp := range s.Timestamps {
		found, err := verifyTimestamp(stamp, s.stamped(), material)
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		if !seen[found.URI] {
			seen[found.URI] = true
			times = append(times, found.Time)
		}
	}
	if len(times) == 0 {
		return nil, errors.Join(refusals...)
	}
	return times, nil
}

func verifyTimestamp(stamp, over []byte, material root.TrustedMaterial) (*root.Timestamp, error) {
	token, err := readTimestamp(stamp)
	if err != nil {
		return nil, err
	}
	refusals := []error{errors.New("a timestamp by no trusted authority")}
	for _, authority := range material.TimestampingAuthorities() {
		if strange(token, authority) {
			continue
		}
		found, err := authority.Verify(stamp, over)
		if err == nil {
			return found, nil
		}
		refusals = append(refusals, err)
	}
	return nil, errors.Join(refusals...)
}

// strange reports that a timestamp has another certificate than the authority's.
// The library finds out only after it has verified with that certificate's key.
func strange(token *pkcs7.PKCS7, authority root.TimestampingAuthority) bool {
	known, ok := authority.(*root.SigstoreTimestampingAuthority)
	if !ok || known.Leaf == nil || token == nil || len(token.Certificates) == 0 {
		return false
	}
	signer := token.GetOnlySigner()
	return signer == nil || !signer.Equal(known.Leaf)
}
