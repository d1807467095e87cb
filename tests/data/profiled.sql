-- What profiles have to cope with. The role is called profiler.
CREATE SCHEMA sales;
CREATE SCHEMA closed;
CREATE EXTENSION citext;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN year AS integer CHECK (VALUE > 0);
CREATE DOMAIN recent AS year CHECK (VALUE > 1900);

CREATE TABLE people (
    id integer PRIMARY KEY,
    "Full Name" text,
    email text,
    nick citext,
    feeling mood,
    born date,
    joined timestamp with time zone,
    since recent,
    score double precision,
    money numeric(12,2),
    tags text[],
    colours text,
    active boolean,
    nothing text,
    never integer,
    spaces text,
    constant text,
    code char(5),
    span interval,
    essay text,
    place point,
    raw bytea,
    both_ways pair,
    secret text,
    secret_upper text GENERATED ALWAYS AS (upper(secret)) STORED,
    twice integer GENERATED ALWAYS AS (id * 2) STORED,
    boss integer,
    written text
);
INSERT INTO people VALUES
    (1, 'Ann', 'ann@x.org', 'ANN', 'ok', '0044-03-15 BC', '2024-01-01 10:00+00', 1999, 1.5, 10.00, '{red,blue}',
     'Red,Blue', true, NULL, NULL, '  ', 'same', 'ab', '1 day', repeat('long text ', 20000), '(1,2)', '\x00ff', (1, 'x'),
     'hush', DEFAULT, DEFAULT, NULL, '2024-01-31'),
    (2, 'Bob', '', 'ann', 'ok', '2000-02-29', '2024-01-02 10:00+00', 2001, 'NaN', 20.00, '{red}',
     'Red', false, '', NULL, E'\t\n', 'same', 'cd', '2 days', repeat('long text ', 20000), '(1,2)', '\x00', (2, 'y'),
     'hush', DEFAULT, DEFAULT, 1, ''),
    (3, 'ann', NULL, 'Bea', NULL, 'infinity', NULL, 2001, 'Infinity', 'NaN', '{}',
     'Blue', true, ' ', NULL, ' ', NULL, 'ab', '-1 day', 'short', '(3,4)', NULL, (2, 'y'),
     'psst', DEFAULT, DEFAULT, 1, '2025-12-01 10:00'),
    (4, '', 'dee@x.org', NULL, 'happy', '1970-01-01', '2023-12-31 10:00+00', NULL, -2, NULL, NULL,
     'Green', NULL, NULL, NULL, '', 'same', NULL, NULL, '', NULL, NULL, NULL,
     'hush', DEFAULT, DEFAULT, 9, NULL);

CREATE TABLE sales."Order" (
    "Id" bigint PRIMARY KEY,
    "person.id" integer REFERENCES people,
    doc jsonb,
    old json,
    broken json,
    list jsonb
);
INSERT INTO sales."Order" VALUES
    (1, 1, '{"a": {"b": 1, "it''s": "x"}, "n": 10, "mixed": 1, "tags": ["u", "v"]}', '{"k": "v"}', '{"z": 1}', '[1]'),
    (2, 1, '{"a": {"b": 2.5}, "n": 9, "mixed": "one", "flag": true, "a.c": "dot", "0": "zero"}', '{"k": ""}',
     '{"z": "\u0000"}', '[1]'),
    (3, NULL, '{"a": null, "n": null, "mixed": {"deep": 1}, "items": [{"pin": "in a list"}]}', NULL, NULL, '"text"'),
    (4, 2, NULL, '{"k": "v"}', NULL, NULL);

CREATE TABLE parts (id integer, region text, amount numeric) PARTITION BY LIST (region);
CREATE TABLE parts_n PARTITION OF parts FOR VALUES IN ('north');
CREATE TABLE parts_s PARTITION OF parts FOR VALUES IN ('south');
INSERT INTO parts SELECT g, CASE WHEN g % 3 = 0 THEN 'north' ELSE 'south' END, g / 4.0 FROM generate_series(1, 90) g;

CREATE TABLE empty (a text, b integer, c jsonb);
CREATE TABLE many (n integer, word text, few text);
INSERT INTO many SELECT g, 'word ' || g % 6000, 'few ' || g % 9 FROM generate_series(1, 12000) g;

CREATE VIEW names AS SELECT id, "Full Name" AS name FROM people;
CREATE VIEW leak AS SELECT id, secret AS innocent FROM people;
CREATE VIEW fails AS SELECT id, 1 / (id - 2) AS ratio, id + 1 AS next FROM people;
CREATE MATERIALIZED VIEW filled AS SELECT feeling, count(*) AS people FROM people GROUP BY feeling;
CREATE MATERIALIZED VIEW unfilled AS SELECT 1 AS one WITH NO DATA;
CREATE TABLE closed.private (id integer);
CREATE TABLE half (open integer, shut integer);
INSERT INTO half VALUES (1, 2);

GRANT USAGE ON SCHEMA sales TO profiler;
GRANT SELECT ON people, sales."Order", parts, empty, many, names, leak, fails, filled, unfilled TO profiler;
GRANT SELECT (open) ON half TO profiler;
