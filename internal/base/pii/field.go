package pii

// A field is what the name of a value says about it.
type field struct {
	kind Kind
	// isWeak: only a value that looks like one is taken for one.
	isWeak bool
	// isPlain: a name of whatever it stands beside, a person's or not.
	isPlain bool
	// isPerson: what has such a field is a person.
	isPerson bool
}

const maxFieldName = 48

// fieldOf reads the name of a field: without case and separators, its words one
// by one, so that homePhone, PHONE_2 and e-mail are known.
func fieldOf(name []byte) field {
	var buf [maxFieldName]byte
	var words [8]int
	text, count := buf[:0], 0
	isNew := true
	for i, c := range name {
		switch {
		case c >= 0x80, isAlnum(c):
		default:
			isNew = true
			continue
		}
		if len(text) == maxFieldName {
			return field{}
		}
		isUpper := c >= 'A' && c <= 'Z'
		if isUpper && i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' || isDigit(c) && i > 0 && !isDigit(name[i-1]) {
			isNew = true
		}
		if isNew {
			if count == len(words) {
				return field{}
			}
			words[count] = len(text)
			count++
			isNew = false
		}
		if isUpper {
			c |= 0x20
		}
		text = append(text, c)
	}
	return fieldOfWords(text, words[:count])
}

// fieldOfWords tries the name, then its ends, then its beginnings.
func fieldOfWords(text []byte, words []int) field {
	for i, w := range words {
		if f := known(string(text[w:])); f.kind != none {
			if i > 0 && f.kind == Address && isMachine(string(text[words[i-1]:w])) {
				return field{}
			}
			return f
		}
	}
	for i := len(words) - 1; i > 0; i-- {
		if !isQualifier(string(text[words[i]:])) {
			return field{}
		}
		if f := known(string(text[:words[i]])); f.kind != none {
			return f
		}
		text = text[:words[i]]
	}
	return field{}
}

// known is the field of a name in lower case without separators.
func known(name string) field {
	switch name {
	case "email", "emails", "mail", "mails", "emailaddress", "emailaddresses", "mailaddress", "emailid", "courriel",
		"correo", "epost":
		return field{kind: Email, isWeak: name == "mail" || name == "mails", isPerson: true}
	case "to", "from", "cc", "bcc", "sender", "recipient", "recipients", "replyto", "returnpath", "author", "username",
		"login", "user":
		return field{kind: Email, isWeak: true}
	case "phone", "phones", "phonenumber", "phonenumbers", "telephone", "telephonenumber", "telefon", "telefonnummer",
		"mobilephone", "cellphone", "msisdn":
		return field{kind: Phone, isPerson: true}
	case "tel", "mobile", "mobilenumber", "mobil", "cell", "cellnumber", "fax", "faxnumber", "whatsapp", "telno", "handy",
		"handynummer":
		return field{kind: Phone, isWeak: true, isPerson: true}
	case "iban", "ibans":
		return field{kind: IBAN, isPerson: true}
	case "card", "pan", "creditcard", "debitcard":
		return field{kind: Card, isWeak: true}
	case "cardnumber", "creditcardnumber", "debitcardnumber", "ccnumber", "cardno", "cvv", "cvc", "cardcvc",
		"securitycode", "kreditkarte":
		return field{kind: Card}
	case "bankaccount", "accountnumber", "bankaccountnumber", "kontonummer", "routingnumber", "sortcode":
		return field{kind: Account}
	}
	return knownPerson(name)
}

// knownPerson is the other half of known.
func knownPerson(name string) field {
	switch name {
	case "ssn", "socialsecurity", "socialsecuritynumber", "socialsecurityno", "nino", "nationalid",
		"nationalinsurancenumber", "nationalidnumber",
		"taxid", "taxnumber", "tin", "itin", "steuerid", "steuernummer", "passport", "passportnumber", "passportno",
		"driverslicense",
		"driverlicense", "driverslicensenumber", "driverlicensenumber", "drivinglicence", "idcard", "idcardnumber",
		"personalid", "personalnumber",
		"personnummer", "cpf", "aadhaar", "pesel", "bsn", "sozialversicherungsnummer", "insurancenumber",
		"medicalrecordnumber", "mrn":
		return field{kind: ID, isPerson: true}
	case "address", "addresses", "street", "streetaddress", "postaladdress", "addressline", "streetname", "housenumber",
		"postcode", "postalcode",
		"zip", "zipcode", "plz", "adresse", "anschrift", "strasse", "straße", "hausnummer", "postleitzahl", "pobox":
		return field{kind: Address}
	case "birthdate", "birthday", "dateofbirth", "dob", "birth", "birthyear", "placeofbirth", "birthplace", "geburtsdatum",
		"geburtstag", "geburtsort":
		return field{kind: Birth, isPerson: true}
	case "firstname", "lastname", "surname", "givenname", "givennames", "familyname", "middlename", "maidenname",
		"fullname", "realname",
		"personname", "forename", "vorname", "nachname", "familienname", "nickname", "fname", "lname", "accountholder",
		"cardholder",
		"cardholdername", "contactname", "customername", "clientname", "patientname", "employeename", "recipientname",
		"sendername":
		return field{kind: Name, isPerson: true}
	case "name", "displayname", "fn":
		return field{kind: Name, isPlain: true}
	}
	return field{}
}

// isQualifier reports whether a word behind the name of a field leaves it the
// same field.
func isQualifier(word string) bool {
	if isDigit(word[0]) {
		return true
	}
	switch word {
	case "home", "work", "office", "private", "personal", "business", "main", "primary", "secondary", "alt", "alternate",
		"other", "old", "new",
		"mobile", "cell", "number", "no", "nr", "value", "raw", "text", "full", "line", "e", "formatted", "normalized",
		"billing", "shipping",
		"privat", "address", "adresse", "intl", "international", "national", "local":
		return true
	}
	return false
}

// isMachine reports whether an address with this word before it is no person's.
func isMachine(word string) bool {
	switch word {
	case "ip", "ipv", "mac", "web", "server", "bind", "listen", "memory", "remote", "host", "net", "network", "local",
		"base", "wallet",
		"contract", "url", "http", "https", "tcp", "udp", "socket", "peer", "proxy", "hardware", "bus", "start", "end",
		"load", "virtual", "physical":
		return true
	}
	return false
}

// fits reports whether a text can be what its weak field says.
func (f field) fits(text []byte) bool {
	if !f.isWeak {
		return true
	}
	digits := 0
	for _, c := range text {
		switch {
		case c == '@' && f.kind == Email:
			return true
		case isDigit(c):
			digits++
		}
	}
	return f.kind != Email && digits >= 5
}
