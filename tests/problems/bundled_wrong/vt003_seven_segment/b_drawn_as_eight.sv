// Wrong: the B is drawn as an eight.
module TopModule (
  input  logic [3:0] digit,
  input  logic       blank,
  input  logic       lamp_test,
  input  logic       active_low,
  output logic [6:0] seg
);

  logic [6:0] glyph;
  logic [6:0] lit;

  always_comb begin
    case (digit)
      4'h0: glyph = 7'b1111110;
      4'h1: glyph = 7'b0110000;
      4'h2: glyph = 7'b1101101;
      4'h3: glyph = 7'b1111001;
      4'h4: glyph = 7'b0110011;
      4'h5: glyph = 7'b1011011;
      4'h6: glyph = 7'b1011111;
      4'h7: glyph = 7'b1110000;
      4'h8: glyph = 7'b1111111;
      4'h9: glyph = 7'b1111011;
      4'ha: glyph = 7'b1110111;
      4'hb: glyph = 7'b1111111;
      4'hc: glyph = 7'b1001110;
      4'hd: glyph = 7'b0111101;
      4'he: glyph = 7'b1001111;
      default: glyph = 7'b1000111;
    endcase
  end

  assign lit = lamp_test ? 7'h7f : blank ? 7'h00 : glyph;
  assign seg = active_low ? ~lit : lit;

endmodule
