"""Search documents by their words and by what is known about them, best matches first.

Needs `pip install indextables`. It makes the table `library` in the current directory.
"""

import pyarrow as pa

import indextables as it

BOOKS = [
    ("Tides and currents", 1994, "en", "Why the tide turns twice a day, and how currents carry heat."),
    ("The night sky", 2003, "en", "A guide to the stars for people with binoculars and patience."),
    ("Le ciel et la mer", 1988, "fr", "La lune, les marées et la navigation par les étoiles."),
    ("Harbour engineering", 2011, "en", "Walls, locks and the load of waves; the tide in narrow basins."),
    ("Bread at home", 2018, "en", "Flour, water, salt and time: sourdough, rye and flat breads."),
    ("Sailing by the stars", 2009, "en", "Finding the way with a sextant, the stars and a tide table."),
    ("Star formation", 2016, "en", "How clouds of gas become stars, told by those who watch them."),
]
SCHEMA = pa.schema(
    [
        ("title", pa.string()),
        ("year", pa.int32()),
        ("language", pa.string()),
        ("text", pa.string()),
    ]
)

library = it.Table.create(
    "library",
    SCHEMA,
    options={
        "indexing.typemap.title": "text",
        "indexing.typemap.text": "text",
        "indexing.typemap.language": "string",
    },
)
library.append(pa.table(dict(zip(SCHEMA.names, zip(*BOOKS, strict=True), strict=True)), SCHEMA))

print("1. The best matches for 'tide stars'")
for row in library.search("tide stars", score=True, columns=["title"], limit=3).to_pylist():
    print(f"   {row['_score']:.2f}  {row['title']}")

print("2. The same, in English, after 2000, with both words")
filters = "year > 2000 AND language = 'en'"
for row in library.search("tide AND star*", where=filters, highlight=("[", "]")).to_pylist():
    print(f"   {row['title']} ({row['year']}): {row['_highlight']['text']}")

print("3. How many per language speak of the sea or the sky")
for row in library.facets("language", query="text:(tide OR stars OR lune OR étoiles)").to_pylist():
    print(f"   {row['value']}: {row['count']}")

print("4. A word that is nearly right")
print("  ", [row["title"] for row in library.search("title:harbor~1", columns=["title"]).to_pylist()])
