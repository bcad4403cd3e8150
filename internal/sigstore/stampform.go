package sigstore

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"

	"github.com/digitorus/pkcs7"
	"golang.org/x/crypto/cryptobyte"
	cryptoasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// Limits of a timestamp. Those of public authorities take up to 7 KiB with their
// certificates.
const (
	maxStamp       = 32 << 10 // bytes
	maxStampDepth  = 32       // elements in each other
	maxStampKeys   = 10       // certificates
	maxRSABits     = 4096
	maxRSAExponent = 65537
)

// CheckTimestamp refuses a response of a timestamp authority that is expensive to
// read. It verifies nothing.
//
// Anyone can add a timestamp to evidence, and the library that reads it does so
// before it looks at who signed: it takes twice as long for every four bytes of
// BER whose elements overlap, and verifies with whatever key an enclosed
// certificate has, for hours if that has a hundred thousand digits.
func CheckTimestamp(response []byte) error {
	_, err := readTimestamp(response)
	return err
}

// readTimestamp is [CheckTimestamp] that also returns what it read, nil if the
// authority made no timestamp: the library says why.
func readTimestamp(response []byte) (*pkcs7.PKCS7, error) {
	if len(response) > maxStamp {
		return nil, fmt.Errorf("a timestamp of %d bytes, more than %d", len(response), maxStamp)
	}
	if err := checkDER(response, maxStampDepth); err != nil {
		return nil, fmt.Errorf("timestamp: %w", err)
	}
	var parts struct {
		Status asn1.RawValue
		Token  asn1.RawValue `asn1:"optional"`
	}
	if _, err := asn1.Unmarshal(response, &parts); err != nil {
		return nil, fmt.Errorf("timestamp: %w", err)
	}
	if len(parts.Token.FullBytes) == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	token, err := pkcs7.Parse(parts.Token.FullBytes)
	if err != nil {
		return nil, fmt.Errorf("timestamp: %w", err)
	}
	if n := len(token.Certificates); n > maxStampKeys {
		return nil, fmt.Errorf("a timestamp with %d certificates, more than %d", n, maxStampKeys)
	}
	for _, c := range token.Certificates {
		if err := checkKeySize(c); err != nil {
			return nil, fmt.Errorf("timestamp: %w", err)
		}
	}
	return token, nil
}

// checkDER refuses what is not a sequence of elements in DER, each wholly inside
// the one around it.
func checkDER(text cryptobyte.String, depth int) error {
	if depth == 0 {
		return fmt.Errorf("more than %d elements in each other", maxStampDepth)
	}
	for !text.Empty() {
		var content cryptobyte.String
		var tag cryptoasn1.Tag
		if !text.ReadAnyASN1(&content, &tag) {
			return errors.New("not in DER")
		}
		const constructed = 0x20
		if tag&constructed == 0 {
			continue
		}
		if err := checkDER(content, depth-1); err != nil {
			return err
		}
	}
	return nil
}

// checkKeySize refuses keys that are larger than sigstore's.
func checkKeySize(c *x509.Certificate) error {
	key, ok := c.PublicKey.(*rsa.PublicKey)
	if ok && (key.N.BitLen() > maxRSABits || key.E > maxRSAExponent) {
		return fmt.Errorf("a certificate with an RSA key of %d bits and exponent %d, more than %d and %d", key.N.BitLen(), key.E, maxRSABits, maxRSAExponent)
	}
	return nil
}
